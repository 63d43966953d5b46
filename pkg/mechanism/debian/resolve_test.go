package debian

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/debian/debiantest"
)

const indexText = `Package: iptables
Source: iptables-src (1.7)
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

const fixesText = `Package: libc6
Version: 2.41+deb13u1
Filename: pool/updates/libc6.deb
Size: 6
SHA256: 1b
Depends: libgcc-s1

Package: libgcc-s1
Version: 14~rc
Filename: pool/updates/libgcc-s1.deb
Size: 8
SHA256: 1d

Package: libmnl1
Version: 1
Filename: pool/updates/libmnl1.deb
Size: 9
SHA256: 1e
`

const indexName = "main/binary-ppc64el/Packages.xz"

// suite returns the files of a suite with an index. Edit changes what its InRelease file says, before it is signed.
func suite(t *testing.T, name, index string, edit func(string) string) map[string]string {
	t.Helper()
	return debiantest.Suite(t, name, "ppc64el", index, edit)
}

// archives serves trixie and its fixes as two archives. Edit changes their files.
func archives(t *testing.T, edit func(main, fixes map[string]string)) Sources {
	t.Helper()
	main, fixes := suite(t, "trixie", indexText, nil), suite(t, "trixie-security", fixesText, nil)
	if edit != nil {
		edit(main, fixes)
	}
	mirror, _ := debiantest.Serve(t, main)
	security, _ := debiantest.Serve(t, fixes)
	return Sources{Mirror: mirror, Security: security, Keyring: debiantest.Keyring(t)}
}

func TestRequestsResolveToAllThatTheyNeed(t *testing.T) {
	t.Parallel()
	w, err := ReadRequest(file(t, "packages.txt", "# why\nsuite trixie\niptables # for this\n\n-awk\n"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(archive, name, version string, size int64, sum, path string) Package {
		return Package{Arch: "ppc64el", Name: name, Version: version, Size: size, SHA256: sum, Archive: archive, Path: path}
	}
	iptables := of(Main, "iptables", "1.8", 5, "0a", "pool/iptables.deb")
	iptables.SourceVersion = "1.7"
	fixed := []Package{ // of each, the newest version
		iptables,
		of(Security, "libc6", "2.41+deb13u1", 6, "1b", "pool/updates/libc6.deb"),
		of(Main, "libgcc-s1", "14", 8, "0d", "pool/libgcc-s1.deb"),
		of(Main, "libmnl1", "1", 9, "0e", "pool/libmnl1.deb"),
		of(Main, "libxt12", "1.8", 7, "0c", "pool/libxt12.deb"),
	}
	from := archives(t, nil)
	requests := []*PackageRequest{w, {Suite: "trixie", Packages: []string{"libmnl1"}}}
	locks, err := resolve(t.Context(), from, requests, []string{"ppc64le"}, "/")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fixed, locks[0].Packages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(fixed[3:4], locks[1].Packages); diff != "" {
		t.Error(diff)
	}
	from.Security = Off
	if locks, err = resolve(t.Context(), from, []*PackageRequest{w}, []string{"ppc64le"}, "/"); err != nil {
		t.Fatal(err)
	}
	fixed[1] = of(Main, "libc6", "2.41", 6, "0b", "pool/libc6.deb")
	if diff := cmp.Diff(fixed, locks[0].Packages); diff != "" {
		t.Errorf("without fixes: %s", diff)
	}
}

// What cannot be checked is an error.
func TestArchivesAreChecked(t *testing.T) {
	t.Parallel()
	edited := func(edit func(string) string) func(t *testing.T, main, fixes map[string]string) {
		return func(t *testing.T, _, fixes map[string]string) {
			clear(fixes)
			maps.Copy(fixes, suite(t, "trixie-security", fixesText, edit))
		}
	}
	until := func(at time.Time) func(string) string {
		return func(s string) string { return "Valid-Until: " + at.UTC().Format(time.RFC1123) + "\n" + s }
	}
	for name, tt := range map[string]struct {
		edit func(t *testing.T, main, fixes map[string]string)
		from func(*Sources)
		want string // "" if it is accepted
	}{
		"as they are": {nil, nil, ""},
		"by hash":     {edited(func(s string) string { return "Acquire-By-Hash: yes\n" + s }), nil, ""},
		"by hash, and not there": {func(t *testing.T, main, fixes map[string]string) {
			edited(func(s string) string { return "Acquire-By-Hash: yes\n" + s })(t, main, fixes)
			for _, files := range []map[string]string{main, fixes} {
				for name, text := range files {
					if folder, _, ok := strings.Cut(name, "by-hash/"); ok {
						delete(files, name)
						files[folder+"Packages.xz"] = text
					}
				}
			}
		}, nil, ""},
		"still valid":             {edited(until(time.Now().Add(time.Hour))), nil, ""},
		"no keys":                 {nil, func(s *Sources) { s.Keyring = "" }, "the keys of Debian's archive are not here"},
		"keys that are not there": {nil, func(s *Sources) { s.Keyring += ".missing" }, "the keys of Debian's archive are not here"},
		"no keyring":              {nil, func(s *Sources) { s.Keyring = file(t, "keyring", "keys") }, "not a keyring of OpenPGP"},
		"other keys": {nil, func(s *Sources) { s.Keyring = debiantest.KeyringOf(t, debiantest.NewKey(t)) },
			"dists/trixie/InRelease: its signature is by none of the keys in "},
		"changed after it was signed": {func(_ *testing.T, _, fixes map[string]string) {
			fixes["dists/trixie-security/InRelease"] = strings.Replace(fixes["dists/trixie-security/InRelease"], "stable", "Stable", 1)
		}, nil, "dists/trixie-security/InRelease: its signature is by none of the keys"},
		"not signed": {func(_ *testing.T, main, _ map[string]string) { main["dists/trixie/InRelease"] = "Codename: trixie\n" }, nil,
			"it has no signature"},
		"not signed, and not checked": {func(_ *testing.T, _, fixes map[string]string) {
			fixes["dists/trixie-security/InRelease"] = strings.Replace(fixes["dists/trixie-security/InRelease"], "stable", "Stable", 1)
		}, func(s *Sources) { s.Keyring = Off }, ""},
		"another suite": {func(_ *testing.T, main, fixes map[string]string) {
			fixes["dists/trixie-security/InRelease"] = main["dists/trixie/InRelease"]
		}, nil, `dists/trixie-security/InRelease: it is of the suite "stable", codename "trixie"`},
		"too old":         {edited(until(time.Now().Add(-time.Hour))), nil, "the mirror is not up to date"},
		"no date":         {edited(func(s string) string { return "Valid-Until: tomorrow\n" + s }), nil, "Valid-Until: parsing time"},
		"no fixes":        {nil, func(s *Sources) { s.Security = "" }, ErrSecurity.Error()},
		"another archive": {nil, func(s *Sources) { s.Security = s.Mirror }, "dists/trixie-security/InRelease: not found (404)"},
	} {
		from := archives(t, func(main, fixes map[string]string) {
			if tt.edit != nil {
				tt.edit(t, main, fixes)
			}
		})
		if tt.from != nil {
			tt.from(&from)
		}
		libc := []*PackageRequest{{Suite: "trixie", Packages: []string{"libc6"}}}
		_, err := resolve(t.Context(), from, libc, []string{"ppc64le"}, machine(t, nil))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if name == "no keys" && !errors.Is(err, ErrKeyring) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRequestsThatCannotBeFulfilled(t *testing.T) {
	t.Parallel()
	ok := PackageRequest{Suite: "trixie", Packages: []string{"iptables"}, Without: []string{"awk"}}
	want := func(name string) PackageRequest { return PackageRequest{Suite: "trixie", Packages: []string{name}} }
	for name, tt := range map[string]struct {
		request PackageRequest
		edit    func(main, fixes map[string]string)
		want    string
	}{
		"unknown package": {want("iptable"), nil, "ppc64el of trixie: there is no package iptable"},
		"unmet need":      {want("iptables"), nil, "iptables depends on awk, which nothing is or provides"},
		"unknown suite":   {PackageRequest{Suite: "sid", Packages: []string{"iptables"}}, nil, "dists/sid/InRelease: not found (404)"},
		"another index":   {ok, func(f, _ map[string]string) { f["dists/trixie/"+indexName] += " " }, "and that in InRelease is"},
		"no index": {ok, func(f, _ map[string]string) {
			f["dists/trixie/InRelease"] = debiantest.Sign(t, "Codename: trixie\nSHA256:\n")
		}, "names no " + indexName},
		"an odd version": {ok, func(_, f map[string]string) {
			for name, data := range suite(t, "trixie-security", strings.Replace(fixesText, "2.41+deb13u1", "x", 1), nil) {
				f[name] = data
			}
		}, "package libc6 x: "},
	} {
		_, err := resolve(t.Context(), archives(t, tt.edit), []*PackageRequest{&tt.request}, []string{"ppc64le"}, "/")
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
		if _, err := ReadRequest(file(t, "packages.txt", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The keys of a Debian are read.
func TestKeyringOfThisMachine(t *testing.T) {
	t.Parallel()
	name := "/" + keyring
	if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
		t.Skip("not a Debian:", err)
	}
	if k, err := (Sources{}).keys(name); err != nil || len(k.list) < 5 {
		t.Errorf("%d keys, error %v", len(k.list), err)
	}
}
