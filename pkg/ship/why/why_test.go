package why

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
)

// A member is a file of a tarball, or a link if it has one.
type member struct{ name, text, link string }

func tarOf(t testing.TB, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func compressed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func hexOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

const commit = "0123456789"

var (
	on  = platform.Platform{OS: "linux", Arch: "amd64"}
	zap = release.Input{Kind: release.Module, Name: "go.uber.org/zap", Version: "v1.27.0", Sum: "h1:z=", License: "MIT"}
	api = release.Input{Kind: release.Module, Name: "k8s.io/api", Version: "v0.37.1-patched.p1",
		Replaces: "k8s.io/api@v0.37.1", Sum: "h1:a="}
	fix      = release.Input{Kind: release.Patch, Name: "patches/0001-fix.patch", SHA256: "12", Changes: []string{"k8s.io/api"}}
	sources  = release.Input{Kind: release.Source, Name: "src.tar.gz"}
	iptables = release.Input{Kind: release.Debian, Name: "iptables", Version: "1.8", Platform: on, SHA256: "34"}
)

// made writes a release of a program, an image of it and a tarball that holds both.
func made(t testing.TB) (string, *release.Release) {
	t.Helper()
	dir := t.TempDir()
	layer := tarOf(t,
		member{name: "usr/sbin/xtables", text: "firewall"}, member{name: "usr/sbin/iptables", link: "/etc/alternatives/iptables"},
		member{name: "etc/alternatives/iptables", link: "../../usr/sbin/xtables"}, member{name: "etc/issue", text: "hello"},
		member{name: "var/lib/dpkg/status.d/iptables", text: "Package: iptables\n"},
		member{name: "var/lib/dpkg/status.d/iptables.md5sums", text: strings.Repeat("0", 32) + "  usr/sbin/xtables\n"})
	top := tarOf(t, member{name: "go/proxy", text: "program"})
	archive := tarOf(t, member{name: "manifest.json", text: "[]"}, member{name: hexOf(layer) + ".tar", text: layer},
		member{name: hexOf(top) + ".tar", text: top})
	for name, text := range map[string]string{
		"server.tar.gz": tarOf(t, member{name: "k/proxy", text: "program"}, member{name: "k/proxy.tar", text: archive},
			member{name: "k/run.sh", text: "run"}, member{name: "k/LICENSES/vendor/go.uber.org/zap/LICENSE", text: "MIT"},
			member{name: "k/version", text: "v1"}),
		"src.tar.gz": tarOf(t, member{name: "scripts/go.sh", text: "run"}, member{name: "scripts/run.sh", text: "run"},
			member{name: "images/issue", text: "hello"}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(compressed(t, text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, &release.Release{
		Version: "v1.37.1", Commit: commit,
		Artifacts: []release.Artifact{
			{Name: "linux/amd64/proxy", Kind: release.Binary, Platform: on, SHA256: hexOf("program"), Action: "compile proxy",
				Package: "acme.io/cmd/proxy",
				Flags:   []string{"-trimpath", "-ldflags=-s -w"}, Inputs: []string{api.PURL(), zap.PURL()}},
			{Name: "acme.io/proxy-amd64:v1", Kind: release.Image, Platform: on, Of: []string{"linux/amd64/proxy"}, Action: "image proxy",
				Inputs: []string{iptables.PURL()},
				Layers: []release.Layer{{Digest: "sha256:11", DiffID: "sha256:" + hexOf(layer)},
					{Digest: "sha256:22", DiffID: "sha256:" + hexOf(top)}}},
			{Name: "acme.io/proxy:v1", Kind: release.Index, Of: []string{"acme.io/proxy-amd64:v1"}},
			{Name: "linux/amd64/proxy.tar", Kind: release.Archive, Platform: on, Of: []string{"acme.io/proxy-amd64:v1"}},
			{Name: "server.tar.gz", Kind: release.Tarball, Platform: on, Path: "server.tar.gz", Action: "package server",
				Of:      []string{"linux/amd64/proxy", "linux/amd64/proxy.tar"},
				Members: []release.Member{{Path: "k/proxy", Artifact: "linux/amd64/proxy"}, {Path: "k/proxy.tar", Artifact: "linux/amd64/proxy.tar"}}},
			{Name: "src.tar.gz", Kind: release.Tarball, Path: "src.tar.gz"},
		},
		Inputs: []release.Input{sources, fix, zap, api, iptables},
	}
}

func TestFilesHaveOrigins(t *testing.T) {
	t.Parallel()
	dir, r := made(t)
	program := Answer{
		Release: "v1.37.1", Commit: commit, Kind: release.Binary, Platform: on, SHA256: hexOf("program"), Action: "compile proxy",
		Package: "acme.io/cmd/proxy",
		Flags:   []string{"-trimpath", "-ldflags=-s -w"}, Inputs: []release.Input{sources, fix, zap, api},
		In: []Place{{Artifact: "acme.io/proxy-amd64:v1"}, {"server.tar.gz", "k/proxy"}},
	}
	packed := Answer{Release: "v1.37.1", Commit: commit, Platform: on, Action: "package server", Inputs: []release.Input{sources}}
	imaged := Answer{Release: "v1.37.1", Commit: commit, Platform: on, Action: "image proxy", Layer: "sha256:11"}
	for _, tt := range []struct {
		name, member string
		like         Answer
		change       func(*Answer)
	}{
		{"linux/amd64/proxy", "", program, func(a *Answer) { a.Name = "linux/amd64/proxy" }},
		{"server.tar.gz", "./k/proxy", program, func(a *Answer) { a.Name, a.Member = "server.tar.gz", "k/proxy" }},
		{"acme.io/proxy:v1", "/go/proxy", program,
			func(a *Answer) { a.Name, a.Member, a.Layer = "acme.io/proxy-amd64:v1", "go/proxy", "sha256:22" }},
		{"server.tar.gz", "k/run.sh", packed, func(a *Answer) {
			a.Name, a.Member, a.SHA256, a.Source = "server.tar.gz", "k/run.sh", hexOf("run"), "scripts/run.sh"
		}},
		{"server.tar.gz", "k/version", packed, func(a *Answer) { a.Name, a.Member, a.SHA256 = "server.tar.gz", "k/version", hexOf("v1") }},
		{"server.tar.gz", "k/LICENSES/vendor/go.uber.org/zap/LICENSE", packed, func(a *Answer) {
			a.Name, a.Member, a.SHA256, a.License = "server.tar.gz", "k/LICENSES/vendor/go.uber.org/zap/LICENSE", hexOf("MIT"),
				"go.uber.org/zap@v1.27.0"
		}},
		{"proxy.tar", "usr/sbin/xtables", imaged, func(a *Answer) {
			a.Name, a.Member, a.SHA256, a.Debian = "acme.io/proxy-amd64:v1", "usr/sbin/xtables", hexOf("firewall"), &iptables
		}},
		{"proxy.tar", "usr/sbin/iptables", imaged, func(a *Answer) {
			a.Name, a.Member, a.Link, a.Debian = "acme.io/proxy-amd64:v1", "usr/sbin/iptables", "/etc/alternatives/iptables", &iptables
		}},
		{"proxy.tar", "etc/issue", imaged, func(a *Answer) {
			a.Name, a.Member, a.SHA256, a.Source = "acme.io/proxy-amd64:v1", "etc/issue", hexOf("hello"), "images/issue"
		}},
	} {
		t.Run(tt.name+" "+tt.member, func(t *testing.T) {
			t.Parallel()
			got, err := File(t.Context(), dir, r, tt.name, tt.member)
			if err != nil {
				t.Fatal(err)
			}
			want := tt.like
			tt.change(&want)
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var text strings.Builder
			if err := got.Text(&text); err != nil || !strings.Contains(text.String(), got.Action) {
				t.Errorf("%s, error %v", &text, err)
			}
		})
	}
}

func TestUnknownNamesHaveNeighbours(t *testing.T) {
	t.Parallel()
	dir, r := made(t)
	for _, tt := range []struct{ name, member, want string }{
		{"porxy", "", "release v1.37.1 has no porxy; did you mean proxy?"},
		{"go.uber.org/zab", "", "did you mean go.uber.org/zap?"},
		{"server.tar.gz", "k/run.sj", "server.tar.gz has no member k/run.sj; did you mean k/run.sh?"},
		{"proxy.tar", "etc/isue", "acme.io/proxy-amd64:v1 has no file etc/isue; did you mean etc/issue?"},
		{"linux/amd64/proxy", "main.go", "linux/amd64/proxy is no tarball and no image, so it has no files in it"},
	} {
		if _, err := File(t.Context(), dir, r, tt.name, tt.member); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want %q", tt.name, tt.member, err, tt.want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "server.tar.gz")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"proxy.tar", "server.tar.gz"} {
		if _, err := File(t.Context(), dir, r, name, "k/version"); !errors.Is(err, fs.ErrNotExist) &&
			!strings.Contains(err.Error(), "no tarball that is here") {
			t.Errorf("%s, without the tarball: error %v", name, err)
		}
	}
}

const imports = `
{"ImportPath": "acme.io/cmd/proxy", "Module": {"Path": "acme.io/cmd"}, "Imports": ["fmt", "acme.io/cmd/app", "k8s.io/api/core"]}
{"ImportPath": "acme.io/cmd/app", "Module": {"Path": "acme.io/cmd"}, "Imports": ["k8s.io/api/core", "go.uber.org/zap/core"]}
{"ImportPath": "go.uber.org/zap/core", "Module": {"Path": "go.uber.org/zap", "Version": "v1.27.0"}, "Imports": ["go.uber.org/zap"]}
{"ImportPath": "go.uber.org/zap", "Module": {"Path": "go.uber.org/zap", "Version": "v1.27.0"}}
{"ImportPath": "k8s.io/api/core", "Module": {"Path": "k8s.io/api", "Version": "v0.37.1", "Replace": {"Path": "k8s.io/api", "Version": "v0.37.1-patched.p1"}}}
`

func TestModulesAreLinkedThroughImports(t *testing.T) {
	t.Parallel()
	_, r := made(t)
	list := func(text string) Lists {
		return func(platform.Platform) ([]io.ReadCloser, error) {
			return []io.ReadCloser{io.NopCloser(strings.NewReader(text))}, nil
		}
	}
	for _, tt := range []struct {
		module  string
		lists   Lists
		chain   []string
		problem string
		patches int
	}{
		{"go.uber.org/zap", list(imports), []string{"acme.io/cmd/proxy", "acme.io/cmd/app", "go.uber.org/zap/core"}, "", 0},
		{"go.uber.org/zap@v1.27.0", list(imports), []string{"acme.io/cmd/proxy", "acme.io/cmd/app", "go.uber.org/zap/core"}, "", 0},
		{"k8s.io/api", list(imports), []string{"acme.io/cmd/proxy", "k8s.io/api/core"}, "", 1},
		{"go.uber.org/zap", list(strings.ReplaceAll(imports, "v1.27.0", "v1.28.0")), nil, "the tree has version v1.28.0 now", 0},
		{"go.uber.org/zap", list(`{"ImportPath": "acme.io/cmd/proxy"}`), nil, "nothing in the tree imports it now", 0},
		{"go.uber.org/zap", nil, nil, "the tree that made the release knows the imports, and this is not it", 0},
	} {
		got, err := Module(r, tt.module, tt.lists)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Links) != 1 || len(got.Patches) != tt.patches || got.Links[0].Problem != tt.problem ||
			!slices.Equal(got.Links[0].Chain, tt.chain) {
			t.Errorf("%s: %+v", tt.module, got)
		}
		var text strings.Builder
		if err := got.Text(&text); err != nil || !strings.Contains(text.String(), "stands   k/proxy in server.tar.gz\n") {
			t.Errorf("%s, error %v", &text, err)
		}
	}
	r.Overrides = []release.Override{{Module: "go.uber.org/zap", Version: "v1.27.0", Fixes: []string{"CVE-2026-1"}, Reason: "it hangs"}}
	got, err := Module(r, "go.uber.org/zap", nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := got.Text(&text); err != nil ||
		!strings.Contains(text.String(), "\n  v1.27.0 is raised above upstream's version: it hangs; fixes CVE-2026-1\n") {
		t.Errorf("of an override: %s, error %v", &text, err)
	}
	fork := release.Input{Kind: release.Module, Name: "acme.io/net", Version: "v0.57.0-acme.1", Replaces: "golang.org/x/net@v0.57.0"}
	r.Inputs = append(r.Inputs, fork)
	r.Overrides = []release.Override{{Module: "golang.org/x/net", Version: "v0.57.0", With: "acme.io/net@v0.57.0-acme.1",
		Reason: "it hangs"}}
	text.Reset()
	if got, err = Module(r, "golang.org/x/net", nil); err == nil {
		err = got.Text(&text)
	}
	if err != nil || !strings.Contains(text.String(), "\n  v0.57.0 is replaced by acme.io/net@v0.57.0-acme.1: it hangs\n") {
		t.Errorf("of a fork: %s, error %v", &text, err)
	}
	if _, err := Module(r, "go.uber.org/zap@v2", nil); err == nil || !strings.Contains(err.Error(),
		"no binary of release v1.37.1 links the module go.uber.org/zap@v2") {
		t.Errorf("another version: error %v", err)
	}
	if _, err := Module(r, "go.uber.org/zap", list(`{"ImportPath": 1}`)); err == nil {
		t.Error("a broken list is read")
	}
}

func FuzzMembers(f *testing.F) {
	f.Add([]byte(tarOf(f, member{name: "a", text: "b"}, member{name: "c", link: "a"})))
	f.Fuzz(func(_ *testing.T, data []byte) {
		c := &contents{files: map[string]imaged{}, owners: map[string]string{}}
		_ = c.layer(context.Background(), bytes.NewReader(data), "sha256:1", "a")
		_ = c.owner("a")
	})
}
