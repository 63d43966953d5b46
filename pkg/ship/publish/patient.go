package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A patient transport asks a registry again that has too much to do, or fails. All requests wait for as long as it wants them to, since
// those of a whole publication are counted together. It does not repeat an upload whose content cannot be read again: who has sent it gets
// the registry's answer, begins again, and waits here.
//
// go-containerregistry believes a registry that says that it has a blob. This asks how much of it: some have had parts of blobs, or
// nothing, after a failure of their disks.
type patient struct {
	to    http.RoundTripper
	sizes map[string]int64 // of blobs, in bytes, by digest
	sent  atomic.Int64     // bytes of bodies

	mu    sync.Mutex
	until time.Time
}

// How long a transport waits if the registry does not say, at first and at most, and how often it asks.
const (
	firstWait = time.Second
	longWait  = 30 * time.Second
	attempts  = 8
)

// longest is how long a registry may let requests wait.
const longest = 10 * time.Minute

func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	wait := firstWait
	for attempt := 1; ; attempt++ {
		if err := p.pause(req.Context()); err != nil {
			return nil, err
		}
		sent, err := p.counted(req, attempt)
		if err != nil {
			return nil, err
		}
		resp, err := p.to.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		if err := p.whole(req, resp); err != nil {
			return nil, errors.Join(err, resp.Body.Close())
		}
		if !busy(resp.StatusCode) {
			return resp, nil
		}
		p.hold(wanted(resp, wait))
		if attempt == attempts || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // or the connection is lost
		_ = resp.Body.Close()
		wait = min(2*wait, longWait)
	}
}

// whole returns an error if an answer says that a registry has a blob of another size.
func (p *patient) whole(req *http.Request, resp *http.Response) error {
	digest := path.Base(req.URL.Path)
	size, known := p.sizes[digest]
	if req.Method == http.MethodHead && resp.StatusCode == http.StatusOK && known && resp.ContentLength >= 0 && resp.ContentLength != size {
		return fmt.Errorf("the registry has %d bytes of %s, which has %d: remove that there", resp.ContentLength, digest, size)
	}
	return nil
}

// busy reports whether a status says that the same request may do later.
func busy(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return true
	}
	return false
}

// wanted returns how long a registry wants requests to wait.
func wanted(resp *http.Response, otherwise time.Duration) time.Duration {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longest)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), longest)
	}
	return otherwise
}

// hold lets all requests wait.
func (p *patient) hold(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(wait); until.After(p.until) {
		p.until = until
	}
}

func (p *patient) pause(ctx context.Context) error {
	for {
		p.mu.Lock()
		wait := time.Until(p.until)
		p.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// counted returns a request whose bytes are counted.
func (p *patient) counted(req *http.Request, attempt int) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	sent := req.Clone(req.Context())
	body := req.Body
	if attempt > 1 {
		var err error
		if body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	sent.Body = counter{body, &p.sent}
	return sent, nil
}

// A counter counts the bytes that are read.
type counter struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
