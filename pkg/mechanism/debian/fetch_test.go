package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"
)

// an archive of files by path; it counts what it was asked.
func serve(t *testing.T, files map[string]string) (m *mirrors, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		text, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return &mirrors{addresses: []string{server.URL}, client: server.Client()}, asked
}

func packageOf(text string) Package {
	sum := sha256.Sum256([]byte(text))
	return Package{"amd64", "iptables", "1.8", hex.EncodeToString(sum[:]), int64(len(text)), "pool/iptables.deb"}
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
	none := func() (*mirrors, error) { return findMirrors("", machine(t, nil)) }
	gone, _ := serve(t, nil)
	other, _ := serve(t, map[string]string{"pool/iptables.deb": "other"})
	longer, _ := serve(t, map[string]string{"pool/iptables.deb": "text and more"})
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, tt := range map[string]struct {
		find func() (*mirrors, error)
		want []string
	}{
		"no mirror":   {none, []string{"package iptables 1.8 is not in ", "there is no mirror to fetch it from", "set SLIPWAY_DEBIAN_MIRROR to a Debian mirror"}},
		"moved on":    {func() (*mirrors, error) { return gone, nil }, []string{"package iptables 1.8", "404", "debian.lock is out of date"}},
		"another sum": {func() (*mirrors, error) { return other, nil }, []string{"package iptables 1.8", "its SHA-256 is ", "debian.lock says " + packageOf("text").SHA256}},
		"too long":    {func() (*mirrors, error) { return longer, nil }, []string{"its SHA-256 is "}},
		"unreachable": {func() (*mirrors, error) {
			return &mirrors{addresses: []string{strings.Replace(dead.URL, "//", "//me:secret@", 1)}, client: dead.Client()}, nil
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
	gone.addresses = append(gone.addresses, has.addresses...)
	if _, err := fetch(t.Context(), t.TempDir(), "", []Package{packageOf("text")}, nil, func() (*mirrors, error) { return gone, nil }); err != nil {
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
	if _, err := fetch(t.Context(), t.TempDir(), folder, []Package{packageOf("other")}, nil, func() (*mirrors, error) { return m, nil }); err != nil {
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
	past, _ := serve(t, map[string]string{"debian/20261121T131324Z/pool/iptables.deb": "text"})
	template, lock, none := past.addresses[0]+"/debian/{time}/", &Lock{Time: "20261121T131324Z"}, machine(t, nil)
	for name, from := range map[string]Sources{
		"after a mirror":    {Mirror: gone.addresses[0], Snapshot: template},
		"without a mirror":  {Snapshot: template},
		"the mirror has it": {Mirror: past.addresses[0] + "/debian/20261121T131324Z", Snapshot: "http://127.0.0.1:9/{time}"},
	} {
		find := func() (*mirrors, error) { return from.find(lock, none) }
		if _, err := fetch(t.Context(), t.TempDir(), "", []Package{packageOf("text")}, nil, find); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, tt := range map[string]struct {
		snapshot string
		lock     *Lock
	}{
		`"http://***@a.example/debian" is not an address such as`: {"http://me:secret@a.example/debian", lock},
		`"{time}" is not an address`:                              {"{time}", lock},
		"needs the time of debian.lock":                           {template, &Lock{}},
	} {
		_, err := Sources{Snapshot: tt.snapshot}.find(tt.lock, none)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", tt.snapshot, err, want)
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
	m, err := findMirrors("", root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http://one.example.com/debian"}, m.addresses); diff != "" {
		t.Error(diff)
	}
	if m, err = findMirrors("https://me:a@mirror.example.com/debian/", machine(t, nil)); err != nil || m.addresses[0] != "https://me:a@mirror.example.com/debian" {
		t.Errorf("%v, error %v", m, err)
	}
	if _, err = findMirrors("ftp://me:secret@mirror.example.com", root); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

const index = `Package: iptables
Version: 1.8
Filename: pool/iptables.deb
Size: 5
SHA256: 0a
Pre-Depends: libc6 (>= 2.38)
Depends: libxt (= 1.8), awk, libmnl0:any | libmnl1, libc6
Description: packet filter
 Depends: nothing

Package: libc6
Version: 2.41
Filename: pool/libc6.deb
Size: 6
SHA256: 0b
Depends: libgcc-s1

Package: libxt12
Version: 1.8
Filename: pool/libxt12.deb
Size: 7
SHA256: 0c
Provides: libxt (= 1.8), other

Package: libgcc-s1
Version: 14
Filename: pool/libgcc-s1.deb
Size: 8
SHA256: 0d
Depends: libc6

Package: libmnl1
Version: 1
Filename: pool/libmnl1.deb
Size: 9
SHA256: 0e
`

// repository serves one suite with the index.
func repository(t *testing.T, edit func(files map[string]string)) *mirrors {
	t.Helper()
	var packed bytes.Buffer
	w, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(index)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const name = "main/binary-ppc64el/Packages.xz"
	files := map[string]string{
		"dists/trixie/" + name: packed.String(),
		"dists/trixie/InRelease": fmt.Sprintf("Suite: stable\nMD5Sum:\n 00 1 %s\nSHA256:\n %x %d %s\n", name,
			sha256.Sum256(packed.Bytes()), packed.Len(), name),
	}
	if edit != nil {
		edit(files)
	}
	m, _ := serve(t, files)
	return m
}

func TestWishesResolveToAllThatTheyNeed(t *testing.T) {
	t.Parallel()
	w, err := ReadWish(file(t, "packages.txt", "# why\nsuite trixie\niptables # for this\n\n-awk\n"))
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	lock, err := w.resolve(t.Context(), repository(t, nil), []string{"ppc64le"}, filepath.Join(t.TempDir(), "no keys"), func(text string) { said = text })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range lock.Packages {
		got = append(got, p.Arch+" "+p.Name)
	}
	if diff := cmp.Diff([]string{"ppc64el iptables", "ppc64el libc6", "ppc64el libgcc-s1", "ppc64el libmnl1", "ppc64el libxt12"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Package{"ppc64el", "iptables", "1.8", "0a", 5, "pool/iptables.deb"}, lock.Packages[0]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(said, "signature of Debian's archive is not checked") {
		t.Errorf("it said %q", said)
	}
}

func TestWishesThatCannotBeFulfilled(t *testing.T) {
	t.Parallel()
	ok := Wish{Suite: "trixie", Packages: []string{"iptables"}, Without: []string{"awk"}}
	for name, tt := range map[string]struct {
		wish Wish
		edit func(map[string]string)
		want string
	}{
		"unknown package": {Wish{Suite: "trixie", Packages: []string{"iptable"}}, nil, "there is no package iptable"},
		"unmet need":      {Wish{Suite: "trixie", Packages: []string{"iptables"}}, nil, "iptables depends on awk, which nothing is or provides"},
		"unknown suite":   {Wish{Suite: "sid", Packages: []string{"iptables"}}, nil, "dists/sid/InRelease: not found (404)"},
		"another index":   {ok, func(f map[string]string) { f["dists/trixie/main/binary-ppc64el/Packages.xz"] += " " }, "and that in InRelease is"},
		"no index":        {ok, func(f map[string]string) { f["dists/trixie/InRelease"] = "SHA256:\n" }, "names no main/binary-ppc64el/Packages.xz"},
	} {
		_, err := tt.wish.resolve(context.Background(), repository(t, tt.edit), []string{"ppc64le"}, "no keys", func(string) {})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"iptables\n":                  "it needs a line like",
		"suite trixie\n":              "it needs a line like",
		"suite trixie\nsuite sid\na1": ":2: \"suite sid\" is neither",
		"suite trixie\nip tables\n":   ":2: \"ip tables\" is neither",
	} {
		if _, err := ReadWish(file(t, "packages.txt", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
