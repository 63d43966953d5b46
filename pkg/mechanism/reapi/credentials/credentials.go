// Package credentials says to a server of the Remote Execution API who asks: by a token in a file, by what a credential helper answers, or
// by a certificate.
//
// Helpers follow Bazel's protocol (https://github.com/EngFlow/credential-helper-spec): the program is called as `helper get`, reads a
// URI and writes headers, both in JSON.
//
// What must never be in here: what is asked for, and where users name files and programs. A secret is in no error and no argument.
package credentials

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A Source is where credentials come from.
type Source struct {
	TokenFile string // a file with a bearer token; read again when it has changed, since tokens expire
	Helper    string // a program
	URI       string // that the helper is asked about: https://cache.example
}

// helperTimeout is how long a helper may take, and unlimited how long headers count that have no time to expire. Both are Bazel's.
const (
	helperTimeout = 10 * time.Second
	unlimited     = 30 * time.Minute
	early         = time.Minute // before they expire, they are asked for again
)

// Headers returns a function that returns headers for a request, or nil without a source. The helper is called only when its last answer
// expires.
func (s Source) Headers() func(context.Context) (http.Header, error) {
	switch {
	case s.TokenFile != "":
		return func(context.Context) (http.Header, error) { return s.token() }
	case s.Helper != "":
		return (&helper{Source: s}).headers
	}
	return nil
}

func (s Source) token() (http.Header, error) {
	data, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return nil, fmt.Errorf("token: %s does not hold one word", s.TokenFile)
	}
	return http.Header{"Authorization": {"Bearer " + token}}, nil
}

// A helper remembers what its program answered.
type helper struct {
	Source

	mu      sync.Mutex
	known   http.Header
	expires time.Time
	err     error // of a program that failed: it is not called again
}

func (h *helper) headers(ctx context.Context) (http.Header, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil || h.known != nil && time.Now().Before(h.expires) {
		return h.known, h.err
	}
	answer, err := h.ask(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.known, h.err = nil, fmt.Errorf("credential helper %s: %w", h.Helper, err)
			return nil, h.err
		}
		return nil, err
	}
	h.known, h.expires = http.Header{}, time.Now().Add(unlimited)
	for name, values := range answer.Headers {
		for _, value := range values {
			h.known.Add(name, value)
		}
	}
	if !answer.Expires.IsZero() {
		h.expires = answer.Expires.Add(-early)
	}
	return h.known, nil
}

type answer struct {
	Headers map[string][]string `json:"headers"`
	Expires time.Time           `json:"expires"`
}

func (h *helper) ask(ctx context.Context) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	request, err := json.Marshal(map[string]string{"uri": h.URI})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, h.Helper, "get")
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer in %v", helperTimeout)
		}
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	a := new(answer)
	if err := json.Unmarshal(stdout.Bytes(), a); err != nil {
		return nil, errors.New("its answer is not JSON with headers") // what it says may be a secret
	}
	return a, nil
}

// Files name what TLS needs besides what this machine trusts. All are PEM, and may be empty.
type Files struct {
	CA          string // certificates of authorities to trust instead
	Certificate string // of this client
	Key         string // of Certificate
}

// TLS reads the files. It returns nil if there are none.
func (f Files) TLS() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		data, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s holds no certificate", f.CA)
		}
	}
	if (f.Certificate == "") != (f.Key == "") {
		return nil, errors.New("a certificate of this client needs its key, and the key its certificate")
	}
	if f.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", f.Certificate, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
