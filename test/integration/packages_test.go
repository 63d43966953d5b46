//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/gpg/gpgtest"
	"slipway.build/pkg/mechanism/rpm"
)

// Debs and rpms of two releases are installed, held, upgraded, downgraded and removed by apt, dpkg, dnf and rpm, without a network.
func TestPackageManagersInstallPackages(t *testing.T) {
	for program, pkg := range map[string]string{
		"mmdebstrap": "mmdebstrap", "lintian": "lintian", "rpmlint": "rpmlint", "unshare": "util-linux", "gpg": "gnupg",
	} {
		need(t, program, pkg)
	}
	needRoot(t)
	r := baseline(t)
	root := filepath.Join(workspace, "packages")
	makeRoot(t, root)
	// As long as the release's version, so that nothing has to be linked, and a hundred years later.
	later := stampAs(strings.Replace(r.version, "+slipway.20", "+slipway.21", 1), strings.Repeat("0123456789", 4))
	var versions []string
	for _, as := range [][]string{nil, later} {
		r.tree.with(append(as, "SLIPWAY_PACKAGES=true")...).make(t, quick).ok(t)
		dir := r.path(tars + "/packages")
		for _, kind := range []string{"deb", "rpm"} {
			files, err := filepath.Glob(filepath.Join(dir, "*."+kind))
			if err != nil || len(files) != 5 {
				t.Fatalf("%d %ss, %v", len(files), kind, err)
			}
			run(t, dir, nil, "cp", append(files, filepath.Join(root, "srv", kind))...).ok(t)
			if as == nil {
				judge(t, kind, files)
			}
		}
		field := run(t, dir, nil, "sh", "-c", "dpkg-deb --field kubelet_*.deb Version").ok(t).stdout
		versions = append(versions, strings.TrimSpace(field))
	}
	r.tree.make(t, quick).ok(t)
	r.sameRelease(t, r.tree)
	publishSmall(t, filepath.Join(root, "srv", "k8s"))
	for _, name := range []string{"apt", "dnf", "signed"} {
		script, err := os.ReadFile(filepath.Join("testdata", "packages-"+name+".sh"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "srv", name+".sh"), script, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, root, []string{"LC_ALL=C", "OLD=" + versions[0], "NEW=" + versions[1], "HOME=/root", "DEBIAN_FRONTEND=noninteractive"},
			"unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc="+filepath.Join(root, "proc"),
			"chroot", root, "/bin/sh", "/srv/"+name+".sh").ok(t)
	}
}

// publishSmall publishes two versions of a small tree, with their packages, in a folder. A key in a file signs the first one, and for the
// second one a key of gpg takes its place, while both still sign the indexes.
func publishSmall(t *testing.T, to string) {
	t.Helper()
	home := gpgtest.New(t, "")
	small := tree{dir: filepath.Join(t.TempDir(), "small"), env: []string{"COSIGN_PASSWORD=secret", "GNUPGHOME=" + string(home)}}
	if err := writeSmallTree(small.dir); err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	small.slipway(t, "keys", "new", keys+"/release").ok(t)
	small.slipway(t, "keys", "new", "--openpgp", "Acme <k8s@acme.example>", keys+"/packages").ok(t)
	file, ofGPG := keys+"/packages.key", "gpg:"+home.Add(t, "Acme <k8s-2@acme.example>", "", "ed25519", "2y")
	for i, packages := range []string{file, ofGPG + "," + file} {
		version := fmt.Sprintf("v1.36.3+acme.%d", i+1)
		tr := small.with(stampAs(version, strings.Repeat("0123456789", 4))...)
		tr.slipway(t, slices.Concat(quickRelease, []string{"--packages"})...).ok(t)
		tr.slipway(t, "sign", "--key", keys+"/release.key").ok(t)
		tr.slipway(t, "publish", "--key", keys+"/release.pub", "--to", "file://"+to, "--packages-key", packages,
			"--url", "file:///srv/k8s").ok(t)
	}
}

// makeRoot makes a root file system with apt, dnf and what packages require.
func makeRoot(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"deb", "rpm", "base", "k8s"} {
		if err := os.MkdirAll(filepath.Join(root, "srv", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	system := debian.System{
		Mirror:   os.Getenv("SLIPWAY_DEBIAN_MIRROR"),
		Packages: []string{"apt", "apt-utils", "iptables", "mount", "dnf", "rpm", "createrepo-c"},
		Progress: func(string) {},
	}
	err := system.Pack(t.Context(), func(packed io.Reader) error {
		extract := exec.Command("tar", "-x", "-C", root)
		extract.Stdin, extract.Stderr = packed, os.Stderr
		return extract.Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	// Debian has no rpms of what packages require.
	for name, file := range map[string]archive.Entry{
		"iptables": {Name: "srv/iptables", Data: []byte("nothing\n")}, "util-linux": {Name: "srv/util-linux", Data: []byte("nothing\n")},
		"dash": {Name: "bin/sh", Mode: fs.ModeSymlink, Link: "dash"},
	} {
		f, err := os.Create(filepath.Join(root, "srv", "base", name+".rpm"))
		if err != nil {
			t.Fatal(err)
		}
		p := rpm.Package{Name: name, Version: "2.0", Release: "1", Arch: "noarch", License: "MIT", Summary: "Nothing",
			Time:  time.Unix(1, 0),
			Files: []archive.Entry{file}}
		if err := p.Write(context.Background(), f, ""); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// accepted are what lintian and rpmlint call errors, and why they are none.
var accepted = map[string]string{
	"statically-linked-binary": "programs are Go's, without cgo",
	"dir-or-file-in-opt":       "container runtimes look for network plugins in /opt/cni/bin",
	"no-dependency-on":         "rpmlint takes kubernetes-cni for a translation, of which locales-cni would be the package",
	"no-signature":             "rpms of a release are not signed",
}

// judge has the linter of a format look at packages.
func judge(t *testing.T, kind string, files []string) {
	t.Helper()
	if kind == "deb" && !soak { // lintian takes 12 seconds of a processor for each
		files = slices.DeleteFunc(files, func(name string) bool { return !strings.HasPrefix(filepath.Base(name), "kubelet_") })
	}
	name, args := "lintian", append([]string{"--allow-root", "--tag-display-limit=0", "--fail-on=none"}, files...)
	form := regexp.MustCompile(`(?m)^E: \S+: (\S+)`)
	if kind == "rpm" {
		name, args, form = "rpmlint", files, regexp.MustCompile(`(?m)^\S+: E: (\S+)`)
	}
	got := run(t, "/", nil, name, args...)
	if !strings.Contains(got.stdout, ": ") {
		t.Fatalf("%s said nothing: %s", name, got)
	}
	for _, m := range form.FindAllStringSubmatch(got.stdout, -1) {
		if accepted[m[1]] == "" {
			t.Errorf("%s: %s", name, m[0])
		}
	}
}
