package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

// URL is like Folder, of what a web server has below a URL with a final slash, or else of the one file there. Nothing is kept. A server
// does not say which files it has, so those that the release does not name are not found.
func URL(ctx context.Context, address string, want Want) (*Report, error) {
	u, err := siteURL(address)
	if err != nil {
		return nil, err
	}
	at := &site{client: &http.Client{}, wait: time.Second}
	if strings.HasSuffix(u.Path, "/") || u.Path == "" {
		at.base = u
		return whole(ctx, at, want)
	}
	name := path.Base(u.Path)
	at.base = u.JoinPath("..")
	at.base.Path = strings.TrimSuffix(at.base.Path, "/") + "/"
	return one(ctx, at, name, want)
}

func siteURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no address of a web server", address)
	}
	return u, nil
}

// A site is a place on a web server.
type site struct {
	base   *url.URL
	client *http.Client
	wait   time.Duration // before the first attempt to resume; twice as long before each further one
}

// attempts is how often a download is begun or resumed without receiving anything, before it is given up.
const attempts = 5

// stall is how long a server may send nothing.
const stall = time.Minute

func (s *site) String() string          { return s.base.Redacted() }
func (s *site) name(file string) string { return s.base.JoinPath(file).Redacted() }

func (s *site) open(ctx context.Context, file string) (io.ReadCloser, int64, error) {
	d := &download{site: s, ctx: ctx, url: s.base.JoinPath(strings.Split(file, "/")...).String()}
	if err := d.resume(); err != nil {
		return nil, 0, err
	}
	return d, d.size, nil
}

// A download is a file of a site. If the connection breaks, it asks for the rest.
type download struct {
	*site
	ctx    context.Context
	url    string
	body   io.ReadCloser
	cancel context.CancelFunc
	timer  *time.Timer
	tag    string // of the version that is read, if the server says so
	size   int64  // of the file, or -1
	at     int64  // bytes read
	failed int    // attempts in vain since something was read
}

// resume asks for what is not read yet, as often as it makes sense.
func (d *download) resume() error {
	for {
		err := d.request()
		var final *finalError
		if err == nil || errors.As(err, &final) || d.ctx.Err() != nil || d.failed+1 >= attempts {
			return err
		}
		select {
		case <-d.ctx.Done():
			return d.ctx.Err()
		case <-time.After(d.wait << d.failed):
		}
		d.failed++
	}
}

// A finalError is an answer that asking again does not change.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func (d *download) request() error {
	ctx, cancel := context.WithCancel(d.ctx)
	timer := time.AfterFunc(stall, cancel)
	r, err := d.ask(ctx)
	if err != nil {
		timer.Stop()
		cancel()
		return err
	}
	d.body, d.cancel, d.timer = r.Body, cancel, timer
	return nil
}

func (d *download) ask(ctx context.Context) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, &finalError{err}
	}
	q.Header.Set("Accept-Encoding", "identity") // the files as they are
	if d.at > 0 {
		q.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
		if d.tag != "" {
			q.Header.Set("If-Range", d.tag)
		}
	}
	r, err := d.client.Do(q)
	if err != nil {
		return nil, err
	}
	switch {
	case d.at == 0 && r.StatusCode == http.StatusOK:
		d.size, d.tag = r.ContentLength, r.Header.Get("ETag")
		if strings.HasPrefix(d.tag, "W/") {
			d.tag = ""
		}
		return r, nil
	case d.at > 0 && r.StatusCode == http.StatusPartialContent && strings.HasPrefix(r.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(d.at, 10)+"-"):
		return r, nil
	case d.at > 0 && r.StatusCode == http.StatusOK: // from the beginning: skip what is known
		if n, err := io.CopyN(io.Discard, r.Body, d.at); err != nil {
			r.Body.Close()
			return nil, fmt.Errorf("%s: %d bytes, want more than %d: %w", d.url, n, d.at, err)
		}
		return r, nil
	}
	r.Body.Close()
	err = fmt.Errorf("%s: the server answers %s", d.url, r.Status)
	switch {
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return nil, &finalError{fmt.Errorf("%w: %w", err, fs.ErrNotExist)}
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500:
		return nil, err
	}
	return nil, &finalError{err}
}

func (d *download) Read(p []byte) (int, error) {
	for {
		d.timer.Reset(stall)
		n, err := d.body.Read(p)
		d.at += int64(n)
		if n > 0 {
			d.failed = 0
		}
		if err == nil || n > 0 {
			return n, nil
		}
		if errors.Is(err, io.EOF) && (d.size < 0 || d.at >= d.size) {
			return 0, io.EOF
		}
		d.Close()
		if d.ctx.Err() != nil {
			return 0, d.ctx.Err()
		}
		if d.failed++; d.failed >= attempts {
			return 0, fmt.Errorf("%s: after %d bytes: %w", d.url, d.at, err)
		}
		if err := d.resume(); err != nil {
			return 0, err
		}
	}
}

// Close ends the download.
func (d *download) Close() error {
	d.timer.Stop()
	d.cancel()
	return d.body.Close()
}

// Fetch reads a file of the folder that an address with a final slash names, into a file that must not be there. A broken connection is
// resumed. More bytes than limit are an error. Whoever calls it checks the content.
func Fetch(ctx context.Context, address, file, to string, limit int64) error {
	u, err := siteURL(address)
	if err != nil {
		return err
	}
	at := &site{base: u, client: &http.Client{}, wait: time.Second}
	from, _, err := at.open(ctx, file)
	if err != nil {
		return fmt.Errorf("%s: %w", at.name(file), err)
	}
	defer from.Close()
	return atomicfile.Write(to, 0o644, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(from, limit+1))
		if err == nil && n > limit {
			err = fmt.Errorf("%s has more than %d bytes", at.name(file), limit)
		}
		return err
	})
}
