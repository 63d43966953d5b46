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
	publishSmall(t, filepath.Join(root, "srv"))
	for _, kind := range []string{"deb", "rpm"} {
		files, err := filepath.Glob(filepath.Join(root, "srv/both/core:/stable:/v1.36", kind, "*", "acme-archive-keyring*"))
		if err != nil || len(files) != 2 {
			t.Fatalf("%q, %v", files, err)
		}
		judge(t, kind, files)
	}
	runScripts(t, root, []string{"apt", "dnf", "signed", "users"}, []string{"OLD=" + versions[0], "NEW=" + versions[1]})
}

// runScripts runs scripts in a root file system, without a network.
func runScripts(t *testing.T, root string, names, env []string) {
	t.Helper()
	env = append(env, "LC_ALL=C", "HOME=/root", "DEBIAN_FRONTEND=noninteractive")
	for _, name := range names {
		script, err := os.ReadFile(filepath.Join("testdata", "packages-"+name+".sh"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "srv", name+".sh"), script, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, root, env, "unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc="+filepath.Join(root, "proc"),
			"chroot", root, "/bin/sh", "/srv/"+name+".sh").ok(t)
	}
}

// publishSmall publishes versions of a small tree, with their packages, in the folder old, signed by a key in a file, and k8s is the same. Both,
// new and withdrawn are what becomes of it: a key of gpg signs, too, then it alone, and then a version is withdrawn. The commands of
// docs/install.md are beside them, with what they need.
func publishSmall(t *testing.T, srv string) {
	t.Helper()
	home := gpgtest.New(t, "")
	small := tree{dir: filepath.Join(t.TempDir(), "small"), env: []string{"COSIGN_PASSWORD=secret", "GNUPGHOME=" + string(home)}}
	if err := writeSmallTree(small.dir); err != nil {
		t.Fatal(err)
	}
	small.edit(t, "release/release.yaml", "packages:\n", "packages:\n- {name: kubectl, binaries: [kubectl], summary: A command line}\n"+
		"- {name: kubeadm, binaries: [kube-log-runner], summary: Not kubeadm}\n")
	keys := t.TempDir()
	small.slipway(t, "keys", "new", keys+"/release").ok(t)
	small.slipway(t, "keys", "new", "--openpgp", "Acme <k8s@acme.example>", keys+"/old").ok(t)
	old, next := keys+"/old.key", "gpg:"+home.Add(t, "Acme <k8s-2@acme.example>", "", "ed25519", "2y")
	publish := func(folder, to string, by ...string) {
		t.Helper()
		small.slipway(t, "publish", folder, "--key", keys+"/release.pub", "--to", "file://"+srv+"/"+to, "--url", "file:///srv/k8s",
			"--packages-key", strings.Join(by, ",")).ok(t)
	}
	kubernetes := "v1.36.3" // of the small tree
	for _, version := range []string{"v1.36.2+acme.1", "v1.36.2+acme.2", "v1.37.0+acme.1"} {
		of, _, _ := strings.Cut(version, "+")
		small.edit(t, "cmd/go.mod", kubernetes, of)
		kubernetes = of
		tr := small.with(stampAs(version, strings.Repeat("0123456789", 4))...)
		tr.slipway(t, slices.Concat(quickRelease, []string{"--packages"})...).ok(t)
		tr.slipway(t, "sign", "--key", keys+"/release.key").ok(t)
		run(t, small.dir, nil, "cp", "-a", tars, keys+"/"+version).ok(t)
		publish(keys+"/"+version, "old", old)
		if version == "v1.36.2+acme.1" {
			tr.slipway(t, "bundle", "--key", keys+"/release.pub", "--platform", "linux/"+hostArch, "--output", srv+"/acme.tar").ok(t)
		}
	}
	for i, by := range [][]string{{old, next}, {next}} {
		from, to := []string{"old", "both"}[i], []string{"both", "new"}[i]
		run(t, srv, nil, "cp", "-a", from, to).ok(t)
		for _, version := range []string{"v1.36.2+acme.2", "v1.37.0+acme.1"} {
			publish(keys+"/"+version, to, by...)
		}
	}
	run(t, srv, nil, "cp", "-a", "new", "withdrawn").ok(t)
	run(t, srv, nil, "cp", "-a", "old", "k8s").ok(t)
	small.slipway(t, "withdraw", "v1.36.2+acme.2", "--reason", "it leaks", "--to", "file://"+srv+"/withdrawn",
		"--packages-key", next).ok(t)
	run(t, srv, nil, "cp", keys+"/release.pub", slipway(t), ".").ok(t)
	var functions strings.Builder
	here := strings.NewReplacer(addressInDocument, "file:///srv/k8s", "1.37", "1.36", "1.38", "1.37") // which slipway makes
	for heading, commands := range documentCommands(t, "docs/install.md") {
		name := strings.ToLower(strings.ReplaceAll(heading, " ", "_"))
		fmt.Fprintf(&functions, "%s() {\n%s}\n", name, here.Replace(commands))
	}
	if err := os.WriteFile(filepath.Join(srv, "install.sh"), []byte(functions.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// addressInDocument begins the URLs in docs/install.md that are about a site.
const addressInDocument = "https://dl.example.com"

// documentCommands returns the commands of a document, in blocks of sh, by the headings above them: all of them, and with the words apt and
// dnf after the heading those that are about these.
func documentCommands(t *testing.T, name string) map[string]string {
	t.Helper()
	src, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for section := range strings.SplitSeq(src.read(t, name), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
				all[heading] += line
				switch {
				case strings.Contains(line, "apt"):
					all[heading+" apt"] += line
				case strings.Contains(line, "dnf") || strings.Contains(line, "yum"):
					all[heading+" dnf"] += line
				}
			}
		}
	}
	return all
}

// makeRoot makes a root file system with apt, dnf and what packages require.
func makeRoot(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"deb", "rpm", "base", "old"} {
		if err := os.MkdirAll(filepath.Join(root, "srv", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	system := debian.System{
		Mirror:   os.Getenv("SLIPWAY_DEBIAN_MIRROR"),
		Packages: []string{"apt", "apt-utils", "iptables", "mount", "dnf", "rpm", "createrepo-c", "curl"},
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
	"unknown-key":              "who looks at a signed rpm does not have the key, which was made for the test",
}

// judge has the linter of a format look at packages.
func judge(t *testing.T, kind string, files []string) {
	t.Helper()
	if kind == "deb" && !soak { // lintian takes 12 seconds of a processor for each
		files = slices.DeleteFunc(files, func(name string) bool {
			return !strings.HasPrefix(filepath.Base(name), "kubelet_") && !strings.Contains(name, "-archive-keyring")
		})
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
