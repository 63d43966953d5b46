package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian/debiantest"
)

// an archive of files by path; it counts what it was asked.
func serve(t *testing.T, files map[string]string) (m *mirrors, asked *atomic.Int32) {
	t.Helper()
	url, asked := debiantest.Serve(t, files)
	m = newMirrors()
	m.now[Main] = []string{url}
	return m, asked
}

// address is that of what serve serves.
func (m *mirrors) address() string { return m.now[Main][0] }

func packageOf(text string) Package {
	sum := sha256.Sum256([]byte(text))
	return Package{
		Arch: "amd64", Name: "iptables", Version: "1.8", Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Archive: Main,
		Path: "pool/iptables.deb",
	}
}

func TestPackagesAreFetchedOnce(t *testing.T) {
	t.Parallel()
	cache := filepath.Join(t.TempDir(), "cache")
	m, asked := serve(t, map[string]string{"pool/iptables.deb": "text"})
	here := func() (*mirrors, error) { return m, nil }
	p := packageOf("text")
	files, err := fetch(t.Context(), cache, "", []Package{p}, nil, here)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(files[0]); err != nil || string(data) != "text" {
		t.Errorf("%q, error %v", data, err)
	}
	nowhere := func() (*mirrors, error) { return nil, errors.New("no mirror was needed") }
	if _, err := fetch(t.Context(), cache, "", []Package{p}, nil, nowhere); err != nil || asked.Load() != 1 {
		t.Errorf("error %v, asked %d times", err, asked.Load())
	}
	// A damaged file is fetched again.
	if err := os.WriteFile(files[0], []byte("texT"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), cache, "", []Package{p}, nil, here); err != nil || asked.Load() != 2 {
		t.Errorf("error %v, asked %d times", err, asked.Load())
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the cache holds %v, error %v", left, err)
	}
}

func TestFetchNamesWhatFailed(t *testing.T) {
	t.Parallel()
	none := func() (*mirrors, error) { return Sources{}.findMirrors(machine(t, nil)) }
	gone, _ := serve(t, nil)
	other, _ := serve(t, map[string]string{"pool/iptables.deb": "other"})
	longer, _ := serve(t, map[string]string{"pool/iptables.deb": "text and more"})
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, tt := range map[string]struct {
		find func() (*mirrors, error)
		want []string
	}{
		"no mirror": {none, []string{"package iptables 1.8 is not in ", "there is no mirror to fetch it from",
			"set SLIPWAY_DEBIAN_MIRROR to a Debian mirror"}},
		"moved on": {func() (*mirrors, error) { return gone, nil }, []string{"package iptables 1.8", "404", "debian.lock is out of date"}},
		"another sum": {func() (*mirrors, error) { return other, nil }, []string{"package iptables 1.8", "its SHA-256 is ",
			"debian.lock says " + packageOf("text").SHA256}},
		"too long": {func() (*mirrors, error) { return longer, nil }, []string{"its SHA-256 is "}},
		"unreachable": {func() (*mirrors, error) {
			m := newMirrors()
			m.now[Main] = []string{strings.Replace(dead.URL, "//", "//me:secret@", 1)}
			return m, nil
		}, []string{"package iptables 1.8", "fetch http://***@127.0.0.1", "refused"}},
	} {
		_, err := fetch(t.Context(), filepath.Join(t.TempDir(), "cache"), "", []Package{packageOf("text")}, nil, tt.find)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

func TestTheNextMirrorIsAsked(t *testing.T) {
	t.Parallel()
	gone, _ := serve(t, nil)
	has, _ := serve(t, map[string]string{"pool/iptables.deb": "text"})
	gone.now[Main] = append(gone.now[Main], has.address())
	if _, err := fetch(t.Context(), t.TempDir(), "", []Package{packageOf("text")}, nil,
		func() (*mirrors, error) { return gone, nil }); err != nil {
		t.Error(err)
	}
}

func TestPackagesAreCopiedFromAFolder(t *testing.T) {
	t.Parallel()
	folder, p := t.TempDir(), packageOf("text")
	nowhere := func() (*mirrors, error) { return nil, errors.New("no mirror") }
	if err := os.WriteFile(filepath.Join(folder, p.FileName()), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := fetch(t.Context(), filepath.Join(t.TempDir(), "cache"), folder, []Package{p}, nil, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(files[0]); err != nil || string(data) != "text" {
		t.Errorf("%q, error %v", data, err)
	}
	// Mirrors have what the folder lacks.
	m, _ := serve(t, map[string]string{"pool/iptables.deb": "other"})
	if _, err := fetch(t.Context(), t.TempDir(), folder, []Package{packageOf("other")}, nil,
		func() (*mirrors, error) { return m, nil }); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(folder, p.FileName()), []byte("texT"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = fetch(t.Context(), t.TempDir(), folder, []Package{p}, nil, nowhere)
	if err == nil || !strings.Contains(err.Error(), "package iptables 1.8: "+filepath.Join(folder, p.FileName())+": its SHA-256 is ") {
		t.Errorf("a changed file: error %v", err)
	}
}

func TestWhatMirrorsRemovedComesFromThePast(t *testing.T) {
	t.Parallel()
	gone, _ := serve(t, nil)
	p, fix := packageOf("text"), packageOf("fixed")
	fix.Archive, fix.Path = Security, "pool/updates/iptables.deb"
	past, _ := serve(t, map[string]string{
		"debian/20261121T131324Z/pool/iptables.deb":                  "text",
		"debian-security/20261122T131324Z/pool/updates/iptables.deb": "fixed", // the archive has taken it up after the time of the lock
	})
	template, lock, none := past.address()+"/{archive}/{time}/", &Lock{Time: "20261121T131324Z"}, machine(t, nil)
	for name, from := range map[string]Sources{
		"after mirrors":   {Mirror: gone.address(), Security: gone.address(), Snapshot: template},
		"without mirrors": {Snapshot: template},
		"with one mirror": {Mirror: past.address() + "/debian/20261121T131324Z", Snapshot: template},
	} {
		find := func() (*mirrors, error) { return from.find(lock, none) }
		if _, err := fetch(t.Context(), t.TempDir(), "", []Package{p, fix}, nil, find); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Sources{Snapshot: template}).find(&Lock{}, none); !errors.Is(err, ErrLock) || !errors.Is(err, ErrSources) {
		t.Errorf("a lock without a time: %v", err)
	}
	for _, from := range []Sources{{}, {Snapshot: Off}} {
		if _, err := from.find(lock, none); !errors.Is(err, ErrSources) {
			t.Errorf("%+v: %v", from, err)
		}
	}
	m, err := Sources{Mirror: gone.address(), Security: Off, Snapshot: Off}.find(lock, none)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.fetch(t.Context(), t.TempDir(), fix); err == nil || !strings.Contains(err.Error(),
		"nothing says where the archive debian-security is") {
		t.Errorf("a fix without its archive: %v", err)
	}
}

func TestThePastIsAskedWithPatience(t *testing.T) {
	t.Parallel()
	var now, most, asked atomic.Int32
	busy := map[string]int{"/pool/a.deb": http.StatusTooManyRequests, "/pool/b.deb": http.StatusServiceUnavailable}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		asked.Add(1)
		if status := busy[r.URL.Path]; status != 0 { // one request at once: no lock is needed
			delete(busy, r.URL.Path)
			w.WriteHeader(status)
			return
		}
		_, _ = w.Write([]byte("text"))
	}))
	t.Cleanup(server.Close)
	m := newMirrors()
	m.past[Main], m.pauses = []string{server.URL}, []time.Duration{0, 0}
	var packages []Package
	for _, name := range []string{"a", "b", "c", "d"} {
		p := packageOf("text")
		p.Path = "pool/" + name + ".deb"
		packages = append(packages, p)
	}
	if _, err := fetch(t.Context(), t.TempDir(), "", packages, nil, func() (*mirrors, error) { return m, nil }); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 1 || asked.Load() != 6 {
		t.Errorf("%d requests, up to %d at once; want 6, one after the other", asked.Load(), most.Load())
	}
	m.past[Main][0] = server.URL + "/%zz"
	if err := m.fetch(t.Context(), t.TempDir(), packages[0]); err == nil || asked.Load() != 6 {
		t.Errorf("what cannot get better is asked again: %d times, error %v", asked.Load()-6, err)
	}
}

func TestSourcesThatMeanNothing(t *testing.T) {
	t.Parallel()
	for want, from := range map[string]Sources{
		`SLIPWAY_DEBIAN_MIRROR: "bookworm" is not`:                         {Mirror: "bookworm"},
		`SLIPWAY_DEBIAN_SECURITY_MIRROR: "no" is not`:                      {Security: "no"},
		`SLIPWAY_DEBIAN_SNAPSHOT: "http://***@a.example/{time}" is not an`: {Snapshot: "http://me:secret@a.example/{time}"},
		`"http://a.example/{archive}" is not`:                              {Snapshot: "http://a.example/{archive}"},
		`"{archive}/{time}" is not`:                                        {Snapshot: "{archive}/{time}"},
	} {
		if err := from.Check(); err == nil || !badrequest.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", from, err, want)
		}
	}
	for _, from := range []Sources{{}, {Security: Off, Snapshot: Off, Keyring: Off}, {Snapshot: PublicSnapshot}} {
		if err := from.Check(); err != nil {
			t.Errorf("%+v: %v", from, err)
		}
	}
}

func TestMirrorsAreAptsOwn(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{
		"etc/os-release": bookworm,
		"etc/apt/sources.list": "deb http://one.example.com/debian/ bookworm main\ndeb http://one.example.com/debian bookworm-updates main\n" +
			"deb http://one.example.com/security bookworm-security main\ndeb file:/srv/debian bookworm main\n",
	})
	none := machine(t, nil)
	const one, fixes, own = "http://one.example.com/debian", "http://one.example.com/security", "https://me:a@mirror.example.com/debian"
	for name, tt := range map[string]struct {
		from Sources
		root string
		want map[string][]string
	}{
		"apt's":               {Sources{}, root, map[string][]string{Main: {one}, Security: {fixes}}},
		"a mirror, not apt's": {Sources{Mirror: own + "/"}, root, map[string][]string{Main: {own}, Security: {fixes}}},
		"without apt":         {Sources{Mirror: own}, none, map[string][]string{Main: {own}}},
		"both": {Sources{Mirror: own, Security: own + "-security/"}, root,
			map[string][]string{Main: {own}, Security: {own + "-security"}}},
		"no fixes": {Sources{Security: Off}, root, map[string][]string{Main: {one}}},
	} {
		m, err := tt.from.findMirrors(tt.root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, m.now); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
