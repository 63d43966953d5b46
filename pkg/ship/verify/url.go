package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/ship/site"
)

// URL is like Folder, of what a web server has below a URL with a final slash, or else of the one file there. Nothing is kept. A server
// does not say which files it has, so those that the release does not name are not found.
func URL(ctx context.Context, address string, want Want) (*Report, error) {
	u, err := siteURL(address)
	if err != nil {
		return nil, err
	}
	at := &webServer{client: &http.Client{}, wait: time.Second}
	if strings.HasSuffix(u.Path, "/") || u.Path == "" {
		at.base = u
		return whole(ctx, at, want)
	}
	_, name := Split(u.Path)
	at.base = u.JoinPath(strings.Repeat("../", 1+strings.Count(name, "/")))
	at.base.Path = strings.TrimSuffix(at.base.Path, "/") + "/"
	if InRepository(name) {
		home, err := releaseOf(ctx, at, name)
		if err != nil {
			return nil, err
		}
		at.base, name = at.base.JoinPath(site.URLPath(home)+"/"), "../../"+name
	}
	return one(ctx, at, name, want)
}

var errAddress = badrequest.Mark(errors.New("not an address of a web server, such as https://dl.example.com/v1.37.1/"))

func siteURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errAddress // the error would hold all of it, with a password
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: %w", u.Redacted(), errAddress)
	}
	return u, nil
}

// A webServer is a place.
type webServer struct {
	base   *url.URL
	client *http.Client
	wait   time.Duration // before the first attempt to resume; twice as long before each further one
}

// attempts is how often a download is begun or resumed without receiving anything new, before it is given up.
const attempts = 5

// stall is how long a server may send nothing.
const stall = time.Minute

func (s *webServer) String() string          { return tail.Redact(s.base.String()) }
func (s *webServer) name(file string) string { return tail.Redact(s.base.JoinPath(file).String()) }

func (s *webServer) open(ctx context.Context, file string) (io.ReadCloser, int64, error) {
	u := s.base.JoinPath(strings.Split(file, "/")...).String()
	d := &download{webServer: s, ctx: ctx, url: u, name: tail.Redact(u)}
	if err := d.resume(); err != nil {
		return nil, 0, err
	}
	return d, d.version.size, nil
}

// A download is a file of a server. If the connection breaks, it asks for the rest.
type download struct {
	*webServer
	ctx     context.Context
	url     string
	name    string // for people
	body    io.ReadCloser
	cancel  context.CancelFunc
	timer   *time.Timer
	version version
	at      int64 // bytes read
	skip    int64 // bytes of the body that were read before: the server began again
	failed  int   // attempts in vain since something new was read
}

// A version is what a server says about the file that it sends.
type version struct {
	tag      string // "" if it says none
	modified string // the same
	size     int64  // or -1
}

// differs reports whether two versions are not of one file. Servers behind one name may have other times for the same file.
func (v version) differs(w version) bool {
	switch {
	case v.size >= 0 && w.size >= 0 && v.size != w.size:
		return true
	case v.tag != "" && w.tag != "":
		return strings.TrimPrefix(v.tag, "W/") != strings.TrimPrefix(w.tag, "W/")
	}
	return v.modified != "" && w.modified != "" && v.modified != w.modified
}

// resume asks for what is not read yet, as often as it makes sense.
func (d *download) resume() error {
	for {
		again, err := d.request()
		if err == nil || !again || d.ctx.Err() != nil || d.failed+1 >= attempts {
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

// request asks for the file, or for the rest of it. A server that cannot send the rest sends all of it, which is skipped up to there, and
// one that has another version by now sends all of that: two versions must not become one file. Of an error, it says whether asking again
// may help.
func (d *download) request() (again bool, err error) {
	ctx, cancel := context.WithCancel(d.ctx)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		cancel()
		return false, err
	}
	q.Header.Set("Accept-Encoding", "identity") // the files as they are
	if d.at > 0 {
		q.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.at))
		if tag := d.version.tag; tag != "" && !strings.HasPrefix(tag, "W/") {
			q.Header.Set("If-Range", tag)
		}
	}
	d.cancel, d.timer = cancel, time.AfterFunc(stall, cancel)
	r, err := d.client.Do(q)
	if err != nil {
		d.timer.Stop()
		cancel()
		return true, err
	}
	d.body = r.Body
	if again, err = d.accept(r); err != nil {
		d.Close()
	}
	return again, err
}

// accept reads the header of an answer. An answer without the file is an error.
func (d *download) accept(r *http.Response) (again bool, err error) {
	got := version{r.Header.Get("ETag"), r.Header.Get("Last-Modified"), r.ContentLength}
	ranges := r.Header.Get("Content-Range")
	d.skip = 0
	switch {
	case d.at == 0 && r.StatusCode == http.StatusOK:
		d.version = got
	case d.at > 0 && r.StatusCode == http.StatusPartialContent && strings.HasPrefix(ranges, fmt.Sprintf("bytes %d-", d.at)):
		_, size, _ := strings.Cut(ranges, "/")
		if got.size, err = strconv.ParseInt(size, 10, 64); err != nil {
			got.size = -1 // "*": the server does not know it
		}
	case d.at > 0 && r.StatusCode == http.StatusOK:
		d.skip = d.at
	case r.StatusCode == http.StatusNotFound || r.StatusCode == http.StatusGone:
		return false, fmt.Errorf("%s: the server answers %s: %w", d.name, r.Status, fs.ErrNotExist)
	default:
		again = r.StatusCode == http.StatusTooManyRequests || r.StatusCode >= 500
		return again, fmt.Errorf("%s: the server answers %s", d.name, r.Status)
	}
	if d.version.differs(got) {
		return false, fmt.Errorf("%s: the file on the server changed after %d bytes: fetch it again", d.name, d.at)
	}
	return false, nil
}

func (d *download) Read(p []byte) (int, error) {
	for {
		d.timer.Reset(stall)
		n, err := d.body.Read(p)
		if known := min(int64(n), d.skip); known > 0 {
			d.skip -= known
			n = copy(p, p[known:n])
		}
		d.at += int64(n)
		if n > 0 {
			d.failed = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && d.skip == 0 && (d.version.size < 0 || d.at >= d.version.size) {
			return 0, io.EOF
		}
		d.Close()
		if d.ctx.Err() != nil {
			return 0, d.ctx.Err()
		}
		if d.failed++; d.failed >= attempts {
			return 0, fmt.Errorf("%s: after %d bytes: %w", d.name, d.at, err)
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
	at := &webServer{base: u, client: &http.Client{}, wait: time.Second}
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
