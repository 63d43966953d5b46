package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/tail"
)

// mirrors are the addresses of an archive of Debian's.
type mirrors struct {
	addresses []string // without a slash at the end; they may hold a name and a password
	client    *http.Client
}

// find returns the mirrors for a lock, and after them the archive of Debian's past.
func (s Sources) find(lock *Lock, root string) (*mirrors, error) {
	m, err := findMirrors(s.Mirror, root)
	if s.Snapshot == "" {
		return m, err
	}
	switch past := strings.ReplaceAll(s.Snapshot, placeholder, lock.Time); {
	case !strings.Contains(s.Snapshot, placeholder) || !isAddress(past):
		return nil, fmt.Errorf("SLIPWAY_DEBIAN_SNAPSHOT: %q is not an address such as http://snapshot.example.com/debian/%s",
			tail.Redact(s.Snapshot), placeholder)
	case lock.Time == "":
		return nil, fmt.Errorf("SLIPWAY_DEBIAN_SNAPSHOT needs the time of debian.lock, which has none: %w", ErrLock)
	case errors.Is(err, ErrSources):
		m = newMirrors()
		fallthrough
	case err == nil:
		m.addresses = append(m.addresses, strings.TrimRight(past, "/"))
		return m, nil
	}
	return nil, err
}

// placeholder stands for the time of a lock in the address of an archive of Debian's past.
const placeholder = "{time}"

func newMirrors() *mirrors {
	return &mirrors{client: &http.Client{Timeout: 10 * time.Minute, Transport: transport(aptProxies())}}
}

// findMirrors returns the mirror that the user names, or those from which the apt of the machine at root has its own suite.
func findMirrors(mirror, root string) (*mirrors, error) {
	m := newMirrors()
	if mirror != "" {
		if err := checkMirror(mirror); err != nil {
			return nil, err
		}
		m.addresses = []string{strings.TrimRight(mirror, "/")}
		return m, nil
	}
	codename, err := codename(filepath.Join(root, "etc", "os-release"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSources)
	}
	entries, err := readSources(filepath.Join(root, "etc", "apt"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSources)
	}
	for _, e := range entries {
		if !e.restrict(codename) || !slices.Contains(strings.Fields(e.get("Suites")), codename) {
			continue
		}
		for _, address := range strings.Fields(e.get("URIs")) {
			if address = strings.TrimRight(address, "/"); isAddress(address) && !slices.Contains(m.addresses, address) {
				m.addresses = append(m.addresses, address)
			}
		}
	}
	if len(m.addresses) == 0 {
		return nil, fmt.Errorf("apt has no source of the web for Debian's %s: %w", codename, ErrSources)
	}
	return m, nil
}

// checkMirror requires that the mirror that the user names is an address.
func checkMirror(mirror string) error {
	if isAddress(mirror) {
		return nil
	}
	return fmt.Errorf("SLIPWAY_DEBIAN_MIRROR: %q is not an address such as http://mirror.example.com/debian", tail.Redact(mirror))
}

func isAddress(mirror string) bool {
	u, err := url.Parse(mirror)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(mirror, " \t\n")
}

// transport uses the proxies of the environment, or else apt's.
func transport(apt []string) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if proxy, err := http.ProxyFromEnvironment(r); proxy != nil || err != nil {
			return proxy, err
		}
		for _, setting := range apt {
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

// get reads a file of the archive from the first mirror that has it, and passes it to take. Errors hold no password.
func (m *mirrors) get(ctx context.Context, path string, take func(io.Reader) error) error {
	var errs []error
	for _, address := range m.addresses {
		err := m.getFrom(ctx, address+"/"+path, take)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	default:
		return failed(errors.New(response.Status))
	}
	if err := take(response.Body); err != nil {
		return failed(err)
	}
	return nil
}
