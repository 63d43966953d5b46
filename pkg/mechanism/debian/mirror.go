package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/tail"
)

// mirrors are the addresses of Debian's archives, without a slash at the end. They may hold a name and a password.
type mirrors struct {
	now    map[string][]string // by archive
	past   map[string][]string // the same at the time of a lock: asked last, over one connection
	client *http.Client
	turn   chan struct{}   // has one element while an archive of the past is asked
	pauses []time.Duration // before an archive of the past is asked again
}

func newMirrors() *mirrors {
	return &mirrors{
		now: map[string][]string{}, past: map[string][]string{},
		client: &http.Client{Timeout: 10 * time.Minute, Transport: transport(aptProxies)},
		turn:   make(chan struct{}, 1),
		pauses: []time.Duration{2 * time.Second, 10 * time.Second, 30 * time.Second},
	}
}

// find returns the mirrors for a lock, and what asks the past for it.
func (s Sources) find(lock *Lock, root string) (*mirrors, error) {
	m, err := s.findMirrors(root)
	if s.Snapshot == "" || s.Snapshot == Off || err != nil && !errors.Is(err, ErrSources) {
		return m, err
	}
	if lock.Time == "" && err != nil {
		return nil, fmt.Errorf("an archive of Debian's past needs the time of debian.lock, which has none: %w: %w", ErrLock, err)
	}
	if m == nil {
		m = newMirrors()
	}
	if at, err := time.Parse(timeFormat, lock.Time); err == nil {
		for _, archive := range []string{Main, Security} {
			// Archives of the past take up what is new some hours later. What leaves a release stays in its archive for a day and a half:
			// https://ftp-master.debian.org/ calls that the stay of execution.
			for _, at := range []time.Time{at, at.Add(24 * time.Hour)} {
				address := strings.NewReplacer("{archive}", archive, "{time}", at.Format(timeFormat)).Replace(s.Snapshot)
				m.past[archive] = append(m.past[archive], strings.TrimRight(address, "/"))
			}
		}
	}
	return m, nil
}

// timeFormat is that of a lock's time.
const timeFormat = "20060102T150405Z"

// findMirrors returns the mirrors that the user names, or those from which the apt of the machine at root has its own suite.
func (s Sources) findMirrors(root string) (*mirrors, error) {
	m := newMirrors()
	if s.Mirror == "" || s.Security == "" {
		if err := m.fromApt(root); err != nil && s.Mirror == "" {
			return nil, fmt.Errorf("%w: %w", err, ErrSources)
		}
	}
	if s.Mirror != "" {
		m.now[Main] = []string{strings.TrimRight(s.Mirror, "/")}
	}
	switch s.Security {
	case "":
	case Off:
		delete(m.now, Security)
	default:
		m.now[Security] = []string{strings.TrimRight(s.Security, "/")}
	}
	return m, nil
}

// fromApt adds the addresses from which the apt of the machine at root has its own suite, and fixes to it.
func (m *mirrors) fromApt(root string) error {
	codename, entries, err := aptSources(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		suites := strings.Fields(e.get("Suites"))
		for archive, suite := range map[string]string{Main: codename, Security: codename + "-security"} {
			for _, address := range strings.Fields(e.get("URIs")) {
				address = strings.TrimRight(address, "/")
				if slices.Contains(suites, suite) && isAddress(address) && !slices.Contains(m.now[archive], address) {
					m.now[archive] = append(m.now[archive], address)
				}
			}
		}
	}
	if len(m.now[Main]) == 0 {
		return fmt.Errorf("apt has no source of the web for Debian's %s", codename)
	}
	return nil
}

// checkMirror requires that the mirror that the user names is an address.
func checkMirror(mirror string) error {
	return checkAddress("SLIPWAY_DEBIAN_MIRROR", mirror, "http://mirror.example.com/debian")
}

func checkAddress(variable, address, example string) error {
	if isAddress(address) {
		return nil
	}
	return badrequest.Mark(fmt.Errorf("%s: %q is not an address such as %s", variable, tail.Redact(address), example))
}

func isAddress(mirror string) bool {
	u, err := url.Parse(mirror)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(mirror, " \t\n")
}

// transport uses the proxies of the environment, or else apt's.
func transport(apt func() []string) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if proxy, err := http.ProxyFromEnvironment(r); proxy != nil || err != nil {
			return proxy, err
		}
		for _, setting := range apt() {
			if name, address, _ := strings.Cut(setting, "="); name == r.URL.Scheme+"_proxy" {
				return url.Parse(address)
			}
		}
		return nil, nil
	}
	return t
}

// errGone says that a mirror does not have a file.
var errGone = errors.New("not found (404)")

// A busyError is the answer of a server that may answer better later.
type busyError string

func (e busyError) Error() string { return string(e) }

// get reads a file of an archive from the first mirror that has it, and passes it to take. Errors hold no password.
func (m *mirrors) get(ctx context.Context, archive, path string, take func(io.Reader) error) error {
	var errs []error
	for _, address := range m.now[archive] {
		err := m.getFrom(ctx, address+"/"+path, take)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	for _, address := range m.past[archive] {
		err := m.getPatiently(ctx, address+"/"+path, take)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errGone) {
			break // a later time is of the same server
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("nothing says where the archive %s is: set SLIPWAY_DEBIAN_SECURITY_MIRROR", archive)
	}
	return errors.Join(errs...)
}

// getPatiently is like getFrom, with the manners that the public archive of the past asks for: one connection, and pauses.
func (m *mirrors) getPatiently(ctx context.Context, address string, take func(io.Reader) error) error {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.turn }()
	for _, pause := range m.pauses {
		err := m.getFrom(ctx, address, take)
		if !mayHelpToWait(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m.getFrom(ctx, address, take)
}

func mayHelpToWait(err error) bool {
	_, busy := errors.AsType[busyError](err)
	return busy || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF)
}

func (m *mirrors) getFrom(ctx context.Context, address string, take func(io.Reader) error) error {
	failed := func(err error) error { return fmt.Errorf("fetch %s: %w", tail.Redact(address), err) }
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return failed(errors.New("not an address")) // the error would hold all of it
	}
	response, err := m.client.Do(r)
	if err != nil {
		if u := new(url.Error); errors.As(err, &u) {
			err = u.Err
		}
		return failed(err)
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return failed(errGone)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return failed(busyError(response.Status))
	default:
		return failed(errors.New(response.Status))
	}
	if err := take(response.Body); err != nil {
		return failed(err)
	}
	return nil
}
