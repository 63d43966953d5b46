package reapi_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/reapi/standin"
)

func client(t *testing.T, s *standin.Server, change ...func(*reapi.Options)) *reapi.Client {
	t.Helper()
	o := reapi.Options{URL: s.URL() + "/main", Patience: 5 * time.Second, Agent: "test"}
	for _, f := range change {
		f(&o)
	}
	c, err := reapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pattern returns bytes that repeat late.
func pattern(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

func opener(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}

func TestContentsComeBackAsTheyWere(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5<<20 + 3} {
		data := pattern(size)
		d := reapi.DigestOf(data)
		if err := c.Write(t.Context(), d, opener(data)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		var got bytes.Buffer
		if err := c.Read(t.Context(), d, &got); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes came back as %d others", size, got.Len())
		}
	}
}

func TestSmallContentsTravelTogether(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	contents := [][]byte{[]byte("one"), nil, pattern(1 << 19)}
	if err := c.WriteBatch(t.Context(), contents); err != nil {
		t.Fatal(err)
	}
	absent := reapi.DigestOf([]byte("nobody stored it"))
	digests := []reapi.Digest{absent}
	for _, data := range contents {
		digests = append(digests, reapi.DigestOf(data))
	}
	missing, err := c.Missing(t.Context(), digests)
	if err != nil || len(missing) != 1 || missing[0] != absent {
		t.Errorf("missing are %v, %v", missing, err)
	}
	got, err := c.ReadBatch(t.Context(), digests)
	if err != nil || len(got) != len(contents) {
		t.Fatalf("%d contents, %v", len(got), err)
	}
	for i, data := range contents {
		if !bytes.Equal(got[digests[i+1]], data) {
			t.Errorf("content %d came back as others", i)
		}
	}
}

func TestBatchesFitIntoMessages(t *testing.T) {
	sizes := []int64{1, reapi.MaxBatch, 700 << 10, 700 << 10, 700 << 10, 700 << 10, 700 << 10, 2}
	together, alone := reapi.Batches(sizes, func(n int64) int64 { return n })
	if len(alone) != 1 || alone[0] != reapi.MaxBatch {
		t.Errorf("alone travel %v", alone)
	}
	count := len(alone)
	for _, batch := range together {
		total := int64(0)
		for _, n := range batch {
			total += n
		}
		if total > reapi.MaxBatch {
			t.Errorf("a batch has %d bytes", total)
		}
		count += len(batch)
	}
	if count != len(sizes) || len(together) != 2 {
		t.Errorf("%d contents in %d batches", count, len(together))
	}
}

func TestResultsComeBackAsTheyWere(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	action, data := reapi.DigestOf([]byte("action")), []byte("program")
	if r, err := c.Result(t.Context(), action); r != nil || err != nil {
		t.Fatalf("before it is stored, the result is %v, %v", r, err)
	}
	if err := c.WriteBatch(t.Context(), [][]byte{data}); err != nil {
		t.Fatal(err)
	}
	stored := &reapi.Result{Files: []reapi.OutputFile{{Path: "bin/a", Digest: reapi.DigestOf(data), Executable: true}},
		Stdout: []byte("by whom")}
	if err := c.StoreResult(t.Context(), action, stored); err != nil {
		t.Fatal(err)
	}
	got, err := c.Result(t.Context(), action)
	if err != nil || got == nil || len(got.Files) != 1 || got.Files[0] != stored.Files[0] || string(got.Stdout) != "by whom" {
		t.Fatalf("the result is %+v, %v", got, err)
	}
	s.Set(standin.Settings{StdoutApart: true})
	got, err = c.Result(t.Context(), action)
	if err != nil || got == nil || len(got.Files) != 1 || string(got.Stdout) != "by whom" {
		t.Fatalf("with stdout apart, the result is %+v, %v", got, err)
	}
	s.Misbehave("Read", standin.Corrupt, -1)
	if r, err := c.Result(t.Context(), action); err == nil {
		t.Errorf("with another stdout, the result is %+v", r)
	}
	s.Behave()
	s.Lose(reapi.DigestOf(data))
	if r, err := c.Result(t.Context(), action); r != nil || err != nil {
		t.Errorf("a result whose file is lost is %v, %v", r, err)
	}
	if err := c.StoreResult(t.Context(), action, &reapi.Result{Stdout: make([]byte, 5<<20)}); err == nil ||
		!strings.Contains(err.Error(), "a server takes") {
		t.Errorf("of a result larger than a message it says %v", err)
	}
}

func TestCapabilities(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	if caps, err := c.Capabilities(t.Context()); err != nil || !caps.SHA256 || !caps.Update {
		t.Errorf("%+v, %v", caps, err)
	}
	s.Set(standin.Settings{ReadOnly: true})
	if caps, err := c.Capabilities(t.Context()); err != nil || caps.Update {
		t.Errorf("of a server that takes no results: %+v, %v", caps, err)
	}
	if err := c.StoreResult(t.Context(), reapi.DigestOf(nil), new(reapi.Result)); !reapi.IsCode(err, reapi.PermissionDenied) {
		t.Errorf("storing there says %v", err)
	}
}

// No fault of a server yields wrong bytes, keeps a client waiting for long, or makes it fall over.
func TestServersThatMisbehave(t *testing.T) {
	for _, kind := range standin.Faults {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := standin.Start(t)
			patient := client(t, s)
			c := client(t, s, func(o *reapi.Options) { o.Patience = 300 * time.Millisecond })
			data := pattern(3 << 20)
			d, action := reapi.DigestOf(data), reapi.DigestOf([]byte("action"))
			if err := patient.Write(t.Context(), d, opener(data)); err != nil {
				t.Fatal(err)
			}
			if err := patient.StoreResult(t.Context(), action, &reapi.Result{Files: []reapi.OutputFile{{Path: "a", Digest: d}}}); err != nil {
				t.Fatal(err)
			}
			for _, method := range []string{"GetCapabilities", "GetActionResult", "UpdateActionResult", "FindMissingBlobs", "BatchReadBlobs",
				"BatchUpdateBlobs", "Read", "Write"} {
				s.Misbehave(method, kind, -1)
			}
			start := time.Now()
			var got bytes.Buffer
			if err := c.Read(t.Context(), d, &got); err == nil {
				t.Error("a content is read")
			}
			if contents, err := c.ReadBatch(t.Context(), []reapi.Digest{d}); err == nil && len(contents) > 0 {
				t.Error("contents are read")
			}
			if kind != standin.Corrupt { // bytes of contents alone
				if r, err := c.Result(t.Context(), action); err == nil {
					t.Errorf("a result is %v", r)
				}
				if _, err := c.Missing(t.Context(), []reapi.Digest{d}); err == nil {
					t.Error("missing contents are listed")
				}
				if _, err := c.Capabilities(t.Context()); err == nil {
					t.Error("the server says what it can do")
				}
				if err := c.Write(t.Context(), d, opener(data)); err == nil {
					t.Error("a content is stored")
				}
				if err := c.WriteBatch(t.Context(), [][]byte{data}); err == nil {
					t.Error("contents are stored")
				}
				if err := c.StoreResult(t.Context(), action, new(reapi.Result)); err == nil {
					t.Error("a result is stored")
				}
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("that took %v", took)
			}
			s.Behave()
			if err := patient.Read(t.Context(), d, io.Discard); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestRequestsAreMadeAgain(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	data := pattern(3 << 20)
	for _, kind := range []standin.Fault{standin.Refuse, standin.Hang, standin.Truncate} {
		s.Misbehave("FindMissingBlobs", kind, 2)
		if missing, err := c.Missing(t.Context(), []reapi.Digest{reapi.DigestOf([]byte("absent"))}); err != nil || len(missing) != 1 {
			t.Errorf("%s: %v, %v", kind, missing, err)
		}
		s.Misbehave("Write", kind, 2)
		if err := c.Write(t.Context(), reapi.DigestOf(data), opener(data)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestContentThatCannotBeReadIsNotStored(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	broken := errors.New("no such disk")
	if err := c.Write(t.Context(), reapi.DigestOf([]byte("a")),
		func() (io.ReadCloser, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("it says %v", err)
	}
	short := opener(pattern(100))
	if err := c.Write(t.Context(), reapi.DigestOf(pattern(200)), short); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of a file that has become shorter it says %v", err)
	}
	if got := s.Contents(); len(got) != 0 {
		t.Errorf("the server has %v", got)
	}
}

func TestReaderThatStopsEndsARead(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	data := pattern(3 << 20)
	if err := c.Write(t.Context(), reapi.DigestOf(data), opener(data)); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	if err := c.Read(t.Context(), reapi.DigestOf(data), writer(func([]byte) (int, error) { return 0, full })); !errors.Is(err, full) {
		t.Errorf("it says %v", err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A transfer may take longer than the client's patience, as long as it moves, but not by a byte now and then.
func TestTransfersHaveToMove(t *testing.T) {
	s := standin.Start(t)
	content := pattern(2 << 20)
	d := reapi.DigestOf(content)
	if err := client(t, s).Write(t.Context(), d, func() (io.ReadCloser, error) {
		return io.NopCloser(
			bytes.NewReader(content)), nil
	}); err != nil {
		t.Fatal(err)
	}
	const patience = 2 * time.Second // a content takes 3.2 at the server's pace
	c := client(t, s, func(o *reapi.Options) { o.Patience = patience })
	read := func(kind standin.Fault) (got []byte, took time.Duration, err error) {
		s.Misbehave("Read", kind, -1)
		start := time.Now()
		var b bytes.Buffer
		err = c.Read(t.Context(), d, &b)
		return b.Bytes(), time.Since(start), err
	}
	if got, took, err := read(standin.Pace); err != nil || !bytes.Equal(got, content) || took < patience {
		t.Errorf("a slow server: %d bytes after %v: %v", len(got), took, err)
	}
	if _, took, err := read(standin.Trickle); err == nil || !strings.Contains(err.Error(), "does not answer") ||
		took < patience || took > 10*patience {
		t.Errorf("a server that sends a byte now and then: after %v: %v", took, err)
	}
}

func TestInterruptEndsRequests(t *testing.T) {
	s := standin.Start(t)
	c := client(t, s)
	s.Misbehave("GetActionResult", standin.Stall, -1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := c.Result(ctx, reapi.DigestOf(nil)); err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("after %v it says %v", time.Since(start), err)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	s := standin.Start(t)
	s.Set(standin.Settings{Authorization: "Bearer secret"})
	if _, err := client(t, s).Missing(t.Context(), nil); err != nil {
		t.Errorf("no contents need no request: %v", err)
	}
	_, err := client(t, s).Result(t.Context(), reapi.DigestOf(nil))
	if !reapi.IsCode(err, reapi.PermissionDenied) || !strings.Contains(err.Error(), "permission denied: not you") {
		t.Errorf("without a token it says %v", err)
	}
	c := client(t, s, func(o *reapi.Options) {
		o.Credentials = func(context.Context) (http.Header, error) {
			return http.Header{"authorization": {"Bearer secret"}}, nil
		}
	})
	if _, err := c.Result(t.Context(), reapi.DigestOf(nil)); err != nil {
		t.Error(err)
	}
	helper := errors.New("the helper failed")
	c = client(t, s, func(o *reapi.Options) {
		o.Credentials = func(context.Context) (http.Header, error) { return nil, helper }
	})
	if _, err := c.Result(t.Context(), reapi.DigestOf(nil)); !errors.Is(err, helper) {
		t.Errorf("it says %v", err)
	}
	for _, header := range s.Headers() {
		if !strings.HasPrefix(header.Get("User-Agent"), "test ") { // grpc-go adds its version
			t.Errorf("the user agent is %q", header.Get("User-Agent"))
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := reapi.New(reapi.Options{URL: "grpc://" + address})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Result(t.Context(), reapi.DigestOf(nil)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("it says %v", err)
	}
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"grpc://127.0.0.1:70000":   "the port is \"70000\"",
		"grpc://127.0.0.1:0":       "the port is \"0\"",
		"grpc://:443":              "not a URL",
		"grpc://cache.example:":    "the port is \"\"",
		"cache.example:443":        "not a URL",
		"https://cache.example":    `the scheme is "https", want grpc or grpcs`,
		"grpc://":                  "not a URL",
		"grpcs://cache.example/?a": "not a URL",
		"grpc://user:pa55@[::1":    "not a URL",
		"grpc://user:pa55@c.test":  "holds a user or a password",
		"://":                      "not a URL",
	} {
		_, err := reapi.New(reapi.Options{URL: url})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pa55") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"grpc://127.0.0.1:8980", "grpcs://cache.example/main/x", "grpcs://[::1]:443/"} {
		if _, err := reapi.New(reapi.Options{URL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// behindTLS returns a server with TLS in front of another one, and who vouches for it.
func behindTLS(t *testing.T, s *standin.Server) (url string, trust *x509.CertPool) {
	t.Helper()
	plain := &http.Transport{Protocols: new(http.Protocols)}
	plain.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(plain.CloseIdleConnections)
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport: plain,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&neturl.URL{Scheme: "http", Host: s.Address})
			r.Out.Header.Set("Te", "trailers")
		},
		FlushInterval: -1,
	})
	front.EnableHTTP2 = true
	front.StartTLS()
	t.Cleanup(front.Close)
	trust = x509.NewCertPool()
	trust.AddCert(front.Certificate())
	return "grpcs://" + front.Listener.Addr().String() + "/main", trust
}

func TestServersWithTLS(t *testing.T) {
	s := standin.Start(t)
	url, trust := behindTLS(t, s)
	c := client(t, s, func(o *reapi.Options) { o.URL, o.TLS = url, &tls.Config{RootCAs: trust} })
	data := pattern(3 << 20)
	var got bytes.Buffer
	err := errors.Join(c.Write(t.Context(), reapi.DigestOf(data), opener(data)), c.Read(t.Context(), reapi.DigestOf(data), &got))
	if err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes: %v", got.Len(), err)
	}
	stranger := client(t, s, func(o *reapi.Options) { o.URL = url })
	if _, err := stranger.Capabilities(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") ||
		strings.Contains(err.Error(), "the server says") {
		t.Errorf("of a server that nobody vouches for it says %v", err)
	}
}
