package bump

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/debian/debiantest"
	"slipway.build/pkg/tree/catalog"
)

// entry is a package's entry in an index.
func entry(name, version, path string) string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nFilename: %s/%s.deb\nSize: 5\nSHA256: %s\n\n", name, version, path, name,
		strings.Repeat("0a", 32))
}

// A fix that only the archive of security fixes has is taken, and what is behind includes it.
func TestSecurityFixesAreTaken(t *testing.T) {
	t.Parallel()
	const old = "suite trixie\ntime 20261121T131324Z\namd64 haproxy 3.0.11-1+deb13u4 5 %[1]s debian pool/haproxy.deb\n" +
		"amd64 zlib1g 1 5 %[1]s debian pool/zlib1g.deb\n"
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		for _, dir := range []string{root, copyDir(root)} {
			file := filepath.Join(dir, "images", "node", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("packages.txt", "suite trixie\nhaproxy\nzlib1g\n")
	write("debian.lock", fmt.Sprintf(old, strings.Repeat("0a", 32)))
	mirror, _ := debiantest.Serve(t, debiantest.Suite(t, "trixie", "amd64",
		entry("haproxy", "3.0.11-1+deb13u4", "pool")+entry("zlib1g", "1", "pool"), nil))
	security, _ := debiantest.Serve(t, debiantest.Suite(t, "trixie-security", "amd64",
		entry("haproxy", "3.0.11-1+deb13u5", "pool/updates"), nil))
	o := Options{Root: root, Say: func(string) {}, Debian: debian.Sources{Mirror: mirror, Security: security, Keyring: debiantest.Keyring(t)}}
	c := &catalog.Catalog{
		Sets:   map[catalog.Set][]catalog.Platform{catalog.Server: {{OS: "linux", Arch: "amd64"}}},
		Images: []catalog.Image{{Name: "node", Base: "node"}},
	}

	q := &inquiry{session: &session{Options: o, catalog: c}}
	q.askDebian(t.Context())
	want := []Item{{
		Kind: "debian", Name: "haproxy", Have: "3.0.11-1+deb13u4", Newest: "3.0.11-1+deb13u5", Behind: true,
		Note: "images/node/debian.lock, from debian-security",
	}}
	if diff := cmp.Diff(want, q.items, cmpopts.IgnoreUnexported(Item{})); diff != "" {
		t.Errorf("what is behind (-want +got):\n%s", diff)
	}

	p := &preparation{session: &session{Options: o, catalog: c}}
	if err := p.toDebian(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, err := debian.ReadLock(p.file("images/node/debian.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if h := lock.Packages[0]; h.Version != "3.0.11-1+deb13u5" || h.Archive != debian.Security || h.Path != "pool/updates/haproxy.deb" ||
		lock.Packages[1].Archive != debian.Main || lock.Time == "20261121T131324Z" {
		t.Errorf("%+v", lock)
	}
	if diff := cmp.Diff([]Move{{"Debian haproxy", "3.0.11-1+deb13u4", "3.0.11-1+deb13u5", "in images/node/debian.lock, from debian-security"}},
		p.Moves); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}

	// What cannot be checked changes nothing, and is no item.
	q.items, q.Debian.Keyring = nil, filepath.Join(root, "missing")
	if q.askDebian(t.Context()); len(q.items) != 1 || !strings.Contains(q.items[0].Note,
		"not known here: the keys of Debian's archive are not here") {
		t.Errorf("%+v", q.items)
	}
	if p.Debian.Keyring = q.Debian.Keyring; p.toDebian(t.Context()) == nil {
		t.Error("a bump without keys")
	}
}
