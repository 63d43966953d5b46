package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test binary is the helper, too: it appends to the file in this variable, and answers with that in the other one.
const (
	calls   = "CREDENTIALS_TEST_CALLS"
	answers = "CREDENTIALS_TEST_ANSWER"
)

func TestMain(m *testing.M) {
	if os.Getenv(calls) == "" {
		os.Exit(m.Run())
	}
	request, _ := io.ReadAll(os.Stdin)
	line := strings.Join(os.Args[1:], " ") + " " + string(request) + "\n"
	f, err := os.OpenFile(os.Getenv(calls), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line)
	}
	answer, ok := os.LookupEnv(answers)
	if err != nil || !ok {
		fmt.Fprintln(os.Stderr, "log in first")
		os.Exit(1)
	}
	fmt.Print(answer)
}

func helperSource(t *testing.T) (s Source, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "calls")
	t.Setenv(calls, log)
	return Source{Helper: os.Args[0], URI: "https://cache.example"}, log
}

func TestHelperIsAskedOnce(t *testing.T) {
	s, log := helperSource(t)
	for name, tc := range map[string]struct {
		expires string
		calls   int
	}{
		"without end":     {"", 1},
		"for an hour":     {time.Now().Add(time.Hour).Format(time.RFC3339), 1},
		"for ten seconds": {time.Now().Add(10 * time.Second).Format(time.RFC3339), 3},
	} {
		t.Run(name, func(t *testing.T) {
			text := map[string]any{"headers": map[string][]string{"authorization": {"Bearer x"}}}
			if tc.expires != "" {
				text["expires"] = tc.expires
			}
			answer, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(answers, string(answer))
			_ = os.Remove(log)
			headers := s.Headers()
			for range 3 {
				h, err := headers(t.Context())
				if err != nil || h.Get("Authorization") != "Bearer x" {
					t.Fatalf("%v, %v", h, err)
				}
			}
			data, err := os.ReadFile(log)
			if err != nil || strings.Count(string(data), "get {\"uri\":\"https://cache.example\"}\n") != tc.calls {
				t.Errorf("the helper was called with %s, %v", data, err)
			}
		})
	}
}

func TestHelpersThatFail(t *testing.T) {
	s, log := helperSource(t)
	headers := s.Headers()
	for range 2 {
		if _, err := headers(t.Context()); err == nil || !strings.Contains(err.Error(), "log in first") {
			t.Errorf("it says %v", err)
		}
	}
	if data, _ := os.ReadFile(log); strings.Count(string(data), "\n") != 1 {
		t.Errorf("a helper that failed was called again: %s", data)
	}
	t.Setenv(answers, "secret")
	if _, err := s.Headers()(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("of an answer that is no JSON it says %v", err)
	}
	s.Helper = "/no/such/helper"
	if _, err := s.Headers()(t.Context()); err == nil || !strings.Contains(err.Error(), "credential helper /no/such/helper") {
		t.Errorf("it says %v", err)
	}
}

func TestTokensComeFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	headers := Source{TokenFile: file}.Headers()
	if _, err := headers(t.Context()); err == nil {
		t.Error("a missing file has a token")
	}
	for text, want := range map[string]string{"abc\n": "Bearer abc", "": "", "two words": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := headers(t.Context())
		if got := h.Get("Authorization"); got != want || (err == nil) != (want != "") {
			t.Errorf("of %q: %q, %v", text, got, err)
		}
	}
	if (Source{}).Headers() != nil {
		t.Error("there are credentials without a source")
	}
}

func TestClientsShowTheirCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.TLS.PeerCertificates))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	own := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: own.Certificate[0]},
		key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		files Files
		says  string
	}{
		"both":          {Files{CA: cert, Certificate: cert, Key: key}, ""},
		"no authority":  {Files{Certificate: cert, Key: key}, "certificate"},
		"none of ours":  {Files{CA: cert}, "certificate required"},
		"half":          {Files{CA: cert, Certificate: cert}, "needs its key"},
		"no file":       {Files{CA: filepath.Join(dir, "none")}, "no such file"},
		"not a CA":      {Files{CA: key}, "holds no certificate"},
		"another's key": {Files{Certificate: cert, Key: cert}, "certificate " + cert},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := tc.files.TLS()
			if err == nil {
				transport := &http.Transport{TLSClientConfig: config}
				defer transport.CloseIdleConnections()
				var answer *http.Response
				answer, err = (&http.Client{Transport: transport}).Get(server.URL)
				if err == nil {
					err = answer.Body.Close()
				}
			}
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it says %v, want %q", err, tc.says)
			}
		})
	}
	if c, err := (Files{}).TLS(); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
}
