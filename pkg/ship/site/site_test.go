package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/release"
)

// made returns a release with two programs, one of them in a tarball, compiled tests, and images.
func made(more ...release.Artifact) *release.Release {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 128)
	r := &release.Release{Version: "v1.37.0+acme.1", Kubernetes: "v1.37.0", Go: "go1.26.8", Commit: "0123",
		Date: time.Date(2026, 11, 29, 23, 0, 0, 0, time.FixedZone("", -7200))}
	for name, kind := range map[string]release.Kind{"linux/amd64/kubelet": release.Binary, "linux/amd64/coredns": release.Binary,
		"registry.k8s.io/coredns/coredns:v1": release.Index, "registry.k8s.io/pause:3": release.Index} {
		r.Artifacts = append(r.Artifacts, release.Artifact{Name: name, Kind: kind, Size: 1, SHA256: a, SHA512: b})
	}
	r.Artifacts = append(r.Artifacts,
		release.Artifact{Name: "linux/amd64/e2e.test", Kind: release.Binary, Package: "example.com/e2e.test", SHA256: a, SHA512: b},
		release.Artifact{Name: "server.tar.gz", Path: "server.tar.gz", Kind: release.Tarball, SHA256: a, SHA512: b, Members: []release.Member{
			{Path: "kubelet", Artifact: "linux/amd64/kubelet"}, {Path: "e2e.test", Artifact: "linux/amd64/e2e.test"}}})
	r.Artifacts = append(r.Artifacts, more...)
	return r
}

func TestFilesFollowFromTheDescription(t *testing.T) {
	t.Parallel()
	files, err := Files(made(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	want := []string{"bin/linux/amd64/kubelet", "bin/linux/amd64/kubelet.sha256", "bin/linux/amd64/kubelet.sha512", "images.txt",
		"kubeadm.yaml", "server.tar.gz.sha256", "server.tar.gz.sha512"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesOfAReleaseAreNotReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubeadm.yaml", "images.txt", "index.html", "withdrawn.txt", "bin/linux/amd64/kubelet",
		"bin/linux/amd64/kubelet.sha256", "server.tar.gz.sha512"} {
		if _, err := Files(made(release.Artifact{Name: name, Path: name, Kind: release.SBOM}), ""); err == nil {
			t.Errorf("a release has a file %s of its own", name)
		}
	}
	for _, name := range []string{"../../kubelet", "../kubelet", "linux//kubelet", `linux\kubelet`} {
		held := release.Artifact{Name: "a.tar", Path: "a.tar", Kind: release.Tarball, Members: []release.Member{{Path: "x", Artifact: name}}}
		if files, err := Files(made(release.Artifact{Name: name, Kind: release.Binary}, held), ""); err == nil {
			for _, f := range files {
				if strings.Contains(f.Path, "..") || strings.Contains(f.Path, `\`) || !strings.HasPrefix(f.Path, "bin/") && f.Content == nil {
					t.Errorf("the program %s has the path %s", name, f.Path)
				}
			}
		}
	}
}

func TestRepositoryOfImages(t *testing.T) {
	t.Parallel()
	for repository, want := range map[string]string{
		"": "registry.k8s.io", "acme.example/k8s": "acme.example/k8s", "registry.k8s.io": "registry.k8s.io"} {
		text := string(kubeadm(made(), repository))
		if !strings.Contains(text, fmt.Sprintf("\nimageRepository: %s\ndns:\n  imageRepository: %[1]s/coredns\n  imageTag: v1\n", want)) {
			t.Errorf("%q: %s", repository, text)
		}
		if got := Repository(made(), []byte(text)); got != strings.TrimPrefix(want, "registry.k8s.io") {
			t.Errorf("%q: it names %q", repository, got)
		}
	}
}

// A page that was published must be recognized by later versions of slipway: with each change of it, raise the number in Generator.
func TestPageStays(t *testing.T) {
	t.Parallel()
	r := made()
	r.Artifacts = r.Artifacts[4:] // in one order
	page, err := IndexPage(r, `<script>"it leaks"`)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(page)
	const want = "86670a253edd86bdd2ce1ffed4a5080aa24893fdc64d753bb7ef912a2b6fa8ce"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the page with Generator %s is %s, want %s:\n%s", Generator, got, want, page)
	}
	if !strings.Contains(string(page), Generator) || strings.Contains(string(page), "<script>") {
		t.Errorf("the page has no Generator, or a script: %s", page)
	}
}

func TestPlusInURLs(t *testing.T) {
	t.Parallel()
	if got := URLPath("release/v1.37.0+acme.1/a b"); got != "release/v1.37.0%2Bacme.1/a%20b" {
		t.Error(got)
	}
}
