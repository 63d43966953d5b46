package verify

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/release"
)

// serve serves a folder. Each answer is given to change first, which may answer itself.
func serve(t *testing.T, dir string, change func(w http.ResponseWriter, r *http.Request) bool) *site {
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
	return &site{base: base, client: server.Client(), wait: time.Millisecond}
}

func TestReleaseOnAWebServer(t *testing.T) {
	t.Parallel()
	dir, _, public := signed(t)
	at := serve(t, dir, nil)
	report, err := URL(t.Context(), at.base.String(), Want{Key: public})
	if err != nil || !report.OK() || report.Signature != Good || len(report.Files) != described+signatures {
		t.Errorf("%+v, %v", report, err)
	}
	report, err = URL(t.Context(), at.base.JoinPath("kubernetes.tar.gz").String(), Want{Key: public})
	if err != nil || !report.OK() || report.Signature != Good {
		t.Errorf("one file: %+v, %v", report, err)
	}
	for address, want := range map[string]string{
		at.base.JoinPath("none.tar.gz").String(): "is not a file of release v1.37.0",
		at.base.JoinPath("none/").String():       "404 Not Found",
		"https:///a/":                            "is no address of a web server",
		"file:///etc/passwd":                     "is no address of a web server",
	} {
		if _, err := URL(t.Context(), address, Want{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", address, err, want)
		}
	}
	if err := os.Remove(dir + "/kubernetes.tar.gz"); err != nil {
		t.Fatal(err)
	}
	report, err = URL(t.Context(), at.base.String(), Want{Key: public})
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
			report, err := whole(t.Context(), at, Want{Key: public})
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
