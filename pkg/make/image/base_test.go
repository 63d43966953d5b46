package image

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"slipway.build/pkg/mechanism/archive"
)

func TestStaticBaseHoldsUsersCertificatesAndTmp(t *testing.T) {
	t.Parallel()
	base, err := Base(bases, "static", "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLayer(base[0].Entries, archive.Packer{Time: created})
	if err != nil {
		t.Fatal(err)
	}
	list, content := members(t, l)
	for _, want := range []string{
		"-rw-r--r-- etc/group",
		"-rw-r--r-- etc/nsswitch.conf",
		"-rw-r--r-- etc/os-release",
		"-rw-r--r-- etc/passwd",
		"-rw-r--r-- etc/ssl/certs/ca-certificates.crt",
		"drwxr-xr-x home/nonroot",
		"drwxr-xr-x root",
		"dtrwxrwxrwx tmp",
	} {
		if !slices.Contains(list, want) {
			t.Errorf("no %q in %q", want, list)
		}
	}
	if got, want := content["etc/nsswitch.conf"], "hosts: files dns\n"; got != want {
		t.Errorf("nsswitch.conf: %q, want %q", got, want)
	}
	for _, user := range []string{"root:x:0:0:", "nonroot:x:65532:65532:", "nobody:x:65534:65534:"} {
		if !slices.ContainsFunc(strings.Split(content["etc/passwd"], "\n"), func(l string) bool { return strings.HasPrefix(l, user) }) {
			t.Errorf("passwd: no %s in %q", user, content["etc/passwd"])
		}
	}
}

func TestUnknownBaseIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Base(bases, "debian", ""); err == nil || !strings.Contains(err.Error(), "base debian: ") {
		t.Errorf("got %v", err)
	}
	if _, err := Static(t.TempDir()); err == nil || !strings.Contains(err.Error(), "rootfs") {
		t.Errorf("a repository without the base: got %v", err)
	}
}

func TestRootfsIsReadWithoutTheUmask(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither executable bits nor a umask")
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etc", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"etc/plain": 0o655, "etc/script": 0o700} {
		path := filepath.Join(dir, name)
		write(t, path, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("etc/plain", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	entries, err := rootfs(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Mode.String()+" "+e.Name+" "+e.Link)
	}
	slices.Sort(got)
	want := []string{
		"-rw-r--r-- etc/plain ", "-rwxr-xr-x etc/script ", "Lrwxrwxrwx link etc/plain", "drwxr-xr-x etc ", "drwxr-xr-x etc/empty ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCertificatesAreAllUnconstrainedRootsUnderTheirName(t *testing.T) {
	t.Parallel()
	data, err := certificates()
	if err != nil {
		t.Fatal(err)
	}
	want, constrained := map[string]bool{}, 0
	for r := range bundle.Roots() {
		if r.Constraint != nil {
			constrained++
			continue
		}
		want[string(r.Certificate)] = true
	}
	comment := regexp.MustCompile(`(?m)^# (.+)\n# SHA-256 ([0-9a-f]{64})\n-----BEGIN CERTIFICATE-----$`)
	comments := comment.FindAllSubmatch(data, -1)
	var names []string
	rest := data
	for i := 0; ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if !want[string(block.Bytes)] {
			t.Errorf("certificate %d is none of the unconstrained roots, or a duplicate", i)
		}
		delete(want, string(block.Bytes))
		sum := sha256.Sum256(block.Bytes)
		if i >= len(comments) || string(comments[i][2]) != hex.EncodeToString(sum[:]) {
			t.Fatalf("certificate %d: its sum is not above it", i)
		}
		names = append(names, string(comments[i][1]))
	}
	if len(want) > 0 || len(names) < 50 {
		t.Errorf("%d certificates, %d are missing", len(names), len(want))
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %q", names)
	}
	if !slices.Contains(names, "ISRG Root X1, Internet Security Research Group, US") {
		t.Errorf("no ISRG Root X1 in %q", names)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(data) {
		t.Error("crypto/x509 reads no certificate from it")
	}
	if again, err := certificates(); err != nil || !bytes.Equal(data, again) {
		t.Errorf("a second call gives other bytes (%v)", err)
	}
}

func TestNoBaseHasTheProgramAtTheRoot(t *testing.T) {
	t.Parallel()
	base, err := Base(bases, "", "")
	if err != nil || base != nil {
		t.Fatalf("base %v, error %v", base, err)
	}
	s := Component(base, Program{Binaries: []Binary{{Name: "pause", File: "pause"}}, User: "65535:65535", OS: "linux",
		Arch: "amd64", Created: created})
	if len(s.Layers) != 1 || len(s.Layers[0].Entries) != 1 || s.Layers[0].Entries[0].Name != "pause" {
		t.Errorf("layers %+v", s.Layers)
	}
	if !slices.Equal(s.Entrypoint, []string{"/pause"}) || s.User != "65535:65535" {
		t.Errorf("starts %q as %q", s.Entrypoint, s.User)
	}
}

func TestBasesStandOnStatic(t *testing.T) {
	t.Parallel()
	packages := filepath.Join(t.TempDir(), "packages.tar")
	f, err := os.Create(packages)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := archive.Tar(f, []archive.Entry{{Name: "usr/sbin/xtables-nft-multi", Mode: 0o755, Data: []byte("program")}},
		created); err != nil {
		t.Fatal(err)
	}
	base, err := Base(bases, "debian-iptables", packages)
	if err != nil {
		t.Fatal(err)
	}
	if len(base) != 2 || !strings.Contains(base[0].Comment, "base static") {
		t.Fatalf("%d layers", len(base))
	}
	l, err := newLayer(base[1].Entries, archive.Packer{Time: created})
	if err != nil {
		t.Fatal(err)
	}
	list, content := members(t, l)
	for _, want := range []string{"-rwxr-xr-x usr/sbin/xtables-nft-multi", "Lrwxrwxrwx usr/sbin/iptables -> xtables-nft-multi"} {
		if !slices.Contains(list, want) {
			t.Errorf("no %q in %q", want, list)
		}
	}
	if content["usr/sbin/xtables-nft-multi"] != "program" {
		t.Errorf("the program is %q", content["usr/sbin/xtables-nft-multi"])
	}
}

func TestFileBelowALinkIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"static/rootfs", "odd/rootfs/lib"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "odd", "rootfs", "lib", "a"), "")
	packages := filepath.Join(root, "packages.tar")
	f, err := os.Create(packages)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries := []archive.Entry{{Name: "bin", Mode: fs.ModeSymlink, Link: "usr/bin"}, {Name: "sbin/a/b", Data: []byte("b")}}
	if err := archive.Tar(f, entries, created); err != nil {
		t.Fatal(err)
	}
	if _, err := Base(root, "odd", packages); err != nil {
		t.Errorf("nothing is below a link: %v", err)
	}
	if err := os.Symlink("usr/sbin", filepath.Join(root, "odd", "rootfs", "sbin")); err != nil {
		t.Fatal(err)
	}
	if _, err := Base(root, "odd", packages); err == nil || !strings.Contains(err.Error(),
		"base odd: sbin/a/b is a file below sbin, which is a link") {
		t.Errorf("error %v", err)
	}
}
