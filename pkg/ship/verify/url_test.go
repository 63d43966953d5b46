package verify

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway.build/pkg/release"
)

// serve serves a folder. Each answer is given to change first, which may answer itself.
func serve(t *testing.T, dir string, change func(w http.ResponseWriter, r *http.Request) bool) *webServer {
	t.Helper()
	files := http.FileServerFS(os.DirFS(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change == nil || !change(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	return &webServer{base: base, client: server.Client(), wait: time.Millisecond}
}

func TestReleaseOnAWebServer(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	at := serve(t, dir, nil)
	report, err := URL(t.Context(), at.base.String(), Want{Trust: signedBy(public)})
	if err != nil || !report.OK() || report.Signature != Good || len(report.Files) != described+signatures {
		t.Errorf("%+v, %v", report, err)
	}
	report, err = URL(t.Context(), at.base.JoinPath("kubernetes.tar.gz").String(), Want{Trust: signedBy(public)})
	if err != nil || !report.OK() || report.Signature != Good {
		t.Errorf("one file: %+v, %v", report, err)
	}
	for address, want := range map[string]string{
		at.base.JoinPath("none.tar.gz").String(): "is not a file of release v1.37.0",
		at.base.JoinPath("none/").String():       "404 Not Found",
		"https:///a/":                            "not an address of a web server",
		"file:///etc/passwd":                     "not an address of a web server",
	} {
		if _, err := URL(t.Context(), address, Want{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", address, err, want)
		}
	}
	if err := os.Remove(dir + "/kubernetes.tar.gz"); err != nil {
		t.Fatal(err)
	}
	report, err = URL(t.Context(), at.base.String(), Want{Trust: signedBy(public)})
	if err != nil || report.OK() || !strings.Contains(bad(report), "kubernetes.tar.gz: missing") {
		t.Errorf("a missing file: %+v, %v", report, err)
	}
}

// A broken connection is resumed where it broke, whether the server can do that or begins again.
func TestDownloadsAreResumed(t *testing.T) {
	t.Parallel()
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprintf("ranges %t", ranges), func(t *testing.T) {
			t.Parallel()
			dir, _, public := signed(t)
			content := read(t, dir, "kubernetes.tar.gz")
			requests := 0
			at := serve(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/kubernetes.tar.gz" {
					return false
				}
				requests++
				from := 0
				if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && ranges {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
					w.Header().Set("Content-Length", fmt.Sprint(len(content)-from))
					w.WriteHeader(http.StatusPartialContent)
				} else {
					from = 0
					w.Header().Set("Content-Length", fmt.Sprint(len(content)))
				}
				to := min(len(content), from+10)
				if !ranges {
					to = min(len(content), 10*requests)
				}
				_, _ = w.Write(content[from:to])
				w.(http.Flusher).Flush()
				if to < len(content) {
					panic(http.ErrAbortHandler)
				}
				return true
			})
			report, err := whole(t.Context(), at, Want{Trust: signedBy(public)})
			if err != nil || !report.OK() || requests < 3 {
				t.Errorf("after %d requests: %+v, %v", requests, report, err)
			}
		})
	}
}

// A server that never gets further, or fails, is given up.
func TestDownloadsEnd(t *testing.T) {
	t.Parallel()
	for what, answer := range map[string]func(w http.ResponseWriter){
		"fails":                    func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"sends nothing":            func(w http.ResponseWriter) { w.Header().Set("Content-Length", "28"); panic(http.ErrAbortHandler) },
		"sends nothing, in ranges": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "28"); w.WriteHeader(http.StatusOK) },
		"refuses":                  func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			at := serve(t, made(t), func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/"+release.File {
					return false
				}
				answer(w)
				return true
			})
			if report, err := whole(t.Context(), at, Want{}); err == nil {
				t.Errorf("%+v", report)
			}
		})
	}
	if _, err := whole(t.Context(), serve(t, t.TempDir(), nil), Want{}); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("no release: %v", err)
	}
}

// An answering answers requests in place of a web server.
type answering func(r *http.Request) *http.Response

func (t answering) RoundTrip(r *http.Request) (*http.Response, error) { return t(r), nil }

// A slowBody sends ten bytes a time, and breaks at its end unless that is the file's.
type slowBody struct {
	ctx     context.Context
	content string
	pause   time.Duration
	whole   bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.content == "" {
		if b.whole {
			return 0, io.EOF
		}
		return 0, io.ErrUnexpectedEOF
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(b.pause):
	}
	n := copy(p, b.content[:min(10, len(b.content))])
	b.content = b.content[n:]
	return n, nil
}

func (b *slowBody) Close() error { return nil }

// fetched reads a file of a web server, whose answers and whose time are the test's.
func fetched(t *testing.T, answer func(request int, r *http.Request) *http.Response) (string, error) {
	t.Helper()
	requests := 0
	at := &webServer{base: &url.URL{Scheme: "http", User: url.UserPassword("me", "p@ss"), Host: "example.com", Path: "/"},
		wait: time.Second, client: &http.Client{
			Transport: answering(func(r *http.Request) *http.Response {
				requests++
				return answer(requests, r)
			}),
		}}
	f, _, err := at.open(t.Context(), "file")
	if err != nil {
		return "", err
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	return string(got), err
}

// A server that cannot send the rest of a file sends all of it again, which may take longer than it may be silent.
func TestSkippingWhatIsReadIsNoStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := strings.Repeat("0123456789", 20)
		got, err := fetched(t, func(n int, r *http.Request) *http.Response {
			body := &slowBody{ctx: r.Context(), content: want, pause: stall / 4, whole: n > 1}
			if n == 1 {
				body.content = want[:150]
			}
			return &http.Response{StatusCode: http.StatusOK, ContentLength: int64(len(want)), Body: body}
		})
		if err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestServersThatAreSilentAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := fetched(t, func(_ int, r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, ContentLength: 100,
				Body: &slowBody{ctx: r.Context(), content: "0123456789", pause: 2 * stall}}
		})
		if err == nil || !strings.Contains(err.Error(), "http://***@example.com/file: after 0 bytes") {
			t.Errorf("error %v", err)
		}
	})
}

// A file that is replaced while it is read must not become one of both versions.
func TestVersionsAreNotSpliced(t *testing.T) {
	t.Parallel()
	header := func(keyValues ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(keyValues); i += 2 {
			h.Set(keyValues[i], keyValues[i+1])
		}
		return h
	}
	const before, after, longer = "0123456789abcdefghij", "9876543210ABCDEFGHIJ", "9876543210ABCDEFGHIJKL"
	for what, tt := range map[string]struct {
		first, then http.Header
		status      int
		content     string // that is sent then
		want        string // "" is an error
	}{
		"the rest": {header("ETag", `"a"`), header("ETag", `"a"`, "Content-Range", "bytes 10-19/20"),
			206, before[10:], before},
		"the rest of an unknown size": {header(), header("Content-Range", "bytes 10-19/*"), 206, before[10:], before},
		"all of it again":             {header("ETag", `"a"`), header("ETag", `"a"`), 200, before, before},
		"all of it, by another server": {header("ETag", `"a"`, "Last-Modified", "1"),
			header("ETag", `W/"a"`, "Last-Modified", "2"), 200, before, before},
		"another tag":              {header("ETag", `"a"`), header("ETag", `"b"`), 200, after, ""},
		"another weak tag":         {header("ETag", `W/"a"`), header("ETag", `W/"b"`), 200, after, ""},
		"another time":             {header("Last-Modified", "1"), header("Last-Modified", "2"), 200, after, ""},
		"another size":             {header(), header(), 200, longer, ""},
		"the rest of another size": {header(), header("Content-Range", "bytes 10-21/22"), 206, longer[10:], ""},
		"the rest of another tag": {header("ETag", `"a"`), header("ETag", `"b"`, "Content-Range",
			"bytes 10-19/20"), 206, after[10:], ""},
		"the rest by a server that lies":   {header("ETag", `"a"`), header("ETag", `"a"`, "Content-Range", "bytes 5-19/20"), 206, before[5:], ""},
		"nothing, since it is gone":        {header(), header(), 404, "", ""},
		"nothing, since it became shorter": {header(), header(), 416, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got, err := fetched(t, func(n int, r *http.Request) *http.Response {
					if n == 1 {
						return &http.Response{StatusCode: 200, Header: tt.first, ContentLength: int64(len(before)),
							Body: &slowBody{ctx: r.Context(), content: before[:10]}}
					}
					return &http.Response{StatusCode: tt.status, Header: tt.then, ContentLength: int64(len(tt.content)),
						Body: &slowBody{r.Context(), tt.content, 0, true}}
				})
				if tt.want == "" && (err == nil || strings.Contains(err.Error(), "p@ss") || strings.Contains(err.Error(), "ss@")) || tt.want != "" &&
					(err != nil || got != tt.want) {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
}
