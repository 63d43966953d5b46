//go:build integration && linux

package integration

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// lyingServer puts a proxy with one fault in front of the API server. Requests without a token are made as the administrator.
func lyingServer(lie string) fault {
	return func(t *testing.T, tr tree) func() {
		t.Helper()
		file := tr.path("_output/cluster/slipway/kubeconfig")
		before := readFile(file)
		field := func(name string) string {
			found := regexp.MustCompile(`(?m)^ *` + name + `: (.*)$`).FindStringSubmatch(before)
			if found == nil {
				t.Fatalf("%s has no %s", file, name)
			}
			return found[1]
		}
		decode := func(name string) []byte {
			text, err := base64.StdEncoding.DecodeString(field(name))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		server, err := url.Parse(field("server"))
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := tls.X509KeyPair(decode("client-certificate-data"), decode("client-key-data"))
		if err != nil {
			t.Fatal(err)
		}
		as := func(certificates ...tls.Certificate) http.RoundTripper { // the proxy is for a server of this test
			return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, ForceAttemptHTTP2: true}
		}
		administrator, anyone := as(certificate), as()
		tell := newLie(lie)
		proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(server) },
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if answer := tell(r); answer != nil {
					return answer, nil
				}
				if r.Header.Get("Authorization") == "" {
					return administrator.RoundTrip(r)
				}
				return anyone.RoundTrip(r)
			}),
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0), // clients that go away
		})
		ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}))
		after := strings.NewReplacer(field("server"), proxy.URL, field("certificate-authority-data"), ca).Replace(before)
		replace(t, file, after)
		return func() {
			replace(t, file, before)
			proxy.CloseClientConnections()
			proxy.Close()
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newLie returns the proxy's fault: a function that changes some requests before they are forwarded, and answers others itself.
func newLie(lie string) func(*http.Request) *http.Response {
	var token atomic.Pointer[string]
	return func(r *http.Request) *http.Response {
		query := r.URL.Query()
		switch {
		case lie == "authorization":
			r.Header.Del("Authorization")
		case lie == "authentication" && r.Header.Get("Authorization") != "":
			now := r.Header.Get("Authorization")
			token.CompareAndSwap(nil, &now)
			r.Header.Set("Authorization", *token.Load())
		case lie == "admission" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/limitranges"):
			query.Set("dryRun", "All")
		case lie == "validation":
			replaceBody(r, `70000`, `70`)
		case lie == "storage" && r.Method == http.MethodPut:
			query.Set("dryRun", "All")
		case lie == "conflict" && r.Method == http.MethodPut:
			replaceBody(r, `"resourceVersion":"[0-9]*"`, `"resourceVersion":""`)
		case lie == "watch" && query.Has("watch") && !query.Has("fieldSelector"): // not those by which kubectl waits
			query.Del("resourceVersion")
		case lie == "resource-version":
			query.Del("resourceVersionMatch") // then a version and all later ones are meant
		case lie == "selectors":
			query.Del("labelSelector")
		case lie == "patch" && r.Method == http.MethodPatch:
			query.Set("dryRun", "All")
		case lie == "custom-resource" && strings.Contains(r.URL.Path, ".example.com/v1"):
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r,
				ProtoMajor: 1, ProtoMinor: 1}
		case lie == "readyz" && r.URL.Path == "/readyz":
			return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r,
				ProtoMajor: 1, ProtoMinor: 1}
		case lie == "parallelism" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs"):
			replaceBody(r, `"parallelism":2`, `"parallelism":3`)
		case lie == "daemonset" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/daemonsets"):
			replaceBody(r, `"nodeSelector":\{[^}]*\}`, `"nodeSelector":{}`)
		case lie == "apply-conflict" && r.Method == http.MethodPatch:
			query.Set("force", "true")
		case lie == "open-api" && strings.HasPrefix(r.URL.Path, "/openapi/v3"):
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r,
				ProtoMajor: 1, ProtoMinor: 1}
		case lie == "bookmarks":
			query.Del("allowWatchBookmarks")
		case lie == "node-authorization":
			r.Header.Del("Impersonate-User")
			r.Header.Del("Impersonate-Group")
		case lie == "admission-policy" && r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/validatingadmissionpolic"):
			query.Set("dryRun", "All")
		case lie == "resources" && strings.HasSuffix(r.URL.Path, "/pods"):
			replaceBody(r, `"resources":\{("[a-z]*":\{[^}]*\},?)*\}`, `"resources":{}`)
		case lie == "webhooks" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "webhookconfigurations"):
			query.Set("dryRun", "All")
		case lie == "snapshot" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps"):
			query.Set("dryRun", "All")
		case lie == "conversion" && r.Method == http.MethodGet:
			r.URL.Path = strings.Replace(r.URL.Path, "/autoscaling/v1/", "/autoscaling/v2/", 1)
		}
		r.URL.RawQuery = query.Encode()
		return nil
	}
}

func replaceBody(r *http.Request, from, to string) {
	if r.Body == nil {
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	text = regexp.MustCompile(from).ReplaceAll(text, []byte(to))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}
