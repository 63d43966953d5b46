package plan

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/worktree/gittest"
)

func status(t *testing.T, p *Project) []byte {
	t.Helper()
	status, err := p.WorkspaceStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestStatusChangesWithSourcesAndTags(t *testing.T) {
	t.Parallel()
	root := tree(t)
	before := status(t, open(t, root))
	if again := status(t, open(t, root)); !bytes.Equal(before, again) {
		t.Errorf("two statuses of one tree differ:\n%s%s", before, again)
	}
	tagged := string(status(t, open(t, root, "KUBE_DOCKER_REGISTRY=acme.example", "KUBE_DOCKER_IMAGE_TAG=nightly")))
	if want := string(before) + registryKey + " acme.example\n" + imageTagKey + " nightly\n"; tagged != want {
		t.Errorf("with tags, the status is\n%swant\n%s", tagged, want)
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := status(t, open(t, root)); bytes.Equal(before, after) {
		t.Error("the status is the same after an edit")
	}
	for line := range strings.Lines(tagged) {
		if !strings.HasPrefix(line, "STABLE_") {
			t.Errorf("Bazel would not rerun anything for %q", line)
		}
	}
}

func TestPackedSourcesHaveTheVersionOfTheStatus(t *testing.T) {
	t.Parallel()
	root := tree(t)
	env := environment()
	known := status(t, open(t, root, "KUBE_GIT_VERSION=v1.36.3+acme.7"))
	var packed, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&packed, &again} {
		if err := PackSources(t.Context(), to, root, known, env); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed.Bytes(), again.Bytes()) || packed.Len() == 0 {
		t.Errorf("tarballs of %d and %d bytes differ, or are empty", packed.Len(), again.Len())
	}
	// The environment is ignored: the status has the version that is stamped into binaries.
	again.Reset()
	if err := PackSources(t.Context(), &again, root, known, environment("KUBE_GIT_VERSION=v1.36.3+acme.8")); err != nil ||
		!bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Errorf("with another version in the environment: %v, %d bytes", err, again.Len())
	}
	if err := os.WriteFile(filepath.Join(root, "README.md"), []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := PackSources(t.Context(), &again, root, known, env); err == nil || !strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("a tree that changed since: error %v", err)
	}
	if err := PackSources(t.Context(), &again, root, []byte("BUILD_HOST h\n"), env); err == nil ||
		!strings.Contains(err.Error(), "not built as a release") {
		t.Errorf("without a status: error %v", err)
	}
}

// A work tree gives the same sources as the unpacked source tarball.
func TestSourcesOfAWorkTreeAreThoseOfTheCommit(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	from := tree(t)
	if err := os.Remove(filepath.Join(from, "version")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(r.Dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	p, err := Open(t.Context(), r.Dir, Settings{}, r.Env())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := statusValue(status(t, p), sourcesKey), r.Git("rev-parse", "HEAD^{tree}"); got != want {
		t.Errorf("the status names %q, want the commit's tree %q", got, want)
	}
	var packed bytes.Buffer
	if err := PackSources(t.Context(), &packed, r.Dir, status(t, p), r.Env()); err != nil || packed.Len() == 0 {
		t.Errorf("%d bytes: %v", packed.Len(), err)
	}
}

// published is a tree with a base of Debian packages. It requires all modules by version and sum.
func published(t *testing.T) (root string) {
	t.Helper()
	root = tree(t, file("images/dns/go.mod", "module slipway.build/images/dns\n\ngo 1.26.0\n\nrequire example.com/dns v1.2.3\n"))
	name := filepath.Join(root, "release", "release.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), "name: kube-apiserver, base: static", "name: kube-apiserver, base: odd", 1)
	if err := os.WriteFile(name, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestOthersPlansTheArtifactsOfOtherProjects(t *testing.T) {
	t.Parallel()
	g, made, err := open(t, published(t)).Others(t.Context(), linuxARM64)
	if err != nil {
		t.Fatal(err)
	}
	plannable(t, g)
	slices.Sort(made)
	want := []string{
		"_output/local/bin/linux/arm64/dns", "_output/local/bin/linux/arm64/dnsctl",
		"_output/release-stage/debian/odd/linux-arm64.tar", "_output/release-stage/licenses/debian/linux-arm64/",
		"_output/release-stage/licenses/dns/linux-arm64/",
		"_output/release-stage/spdx/dns/linux-arm64.json",
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	for _, id := range ids(g) {
		if strings.Contains(id, "kube") {
			t.Errorf("%s is for a component", id)
		}
	}
	// Bazel works in a copy of the tree, which has the folders in it.
	if _, _, err := open(t, tree(t)).Others(t.Context(), linuxARM64); err != nil {
		t.Errorf("a folder in place of a module: error %v", err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "go.mod"), []byte("module example.com/dns\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	away := file("images/dns/go.mod", "module slipway.build/images/dns\n\ngo 1.26.0\n\nrequire example.com/dns v1.2.3\n\n"+
		"replace example.com/dns => "+filepath.ToSlash(outside)+"\n")
	if _, _, err := open(t, tree(t, away)).Others(t.Context(), linuxARM64); err == nil ||
		!strings.Contains(err.Error(), "which is outside of the tree") {
		t.Errorf("a folder outside of the tree in place of a module: error %v", err)
	}
}

// Bazel knows a folder only if it is in the tree, and a cache would have its licenses for others.
func TestLicensesAreOfTheTree(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "go.mod"), []byte("module k8s.io/kubernetes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	away := file("cmd/go.mod", "module slipway.build/cmd\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n\n"+
		"replace k8s.io/kubernetes => "+filepath.ToSlash(outside)+"\n")
	err := open(t, tree(t, away)).GatherLicenses(t.Context(), t.TempDir(), linuxARM64)
	if err == nil || !strings.Contains(err.Error(), outside+", which is outside of the tree") {
		t.Errorf("a folder outside of the tree in place of a module: error %v", err)
	}
}

// A copy has only sources, and the version of the original.
func TestCopiedSourcesAreATree(t *testing.T) {
	t.Parallel()
	root, dir := tree(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "_output", "local"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := open(t, root, "KUBE_GIT_VERSION=v1.36.3+acme.7")
	if err := p.CopySources(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	copied := open(t, dir)
	if copied.Stamp != p.Stamp {
		t.Errorf("stamp %v, want %v", copied.Stamp, p.Stamp)
	}
	if diff := cmp.Diff(p.tree.Files, copied.tree.Files); diff != "" {
		t.Errorf("sources (-tree +copy):\n%s", diff)
	}
}

func TestPackingMadeBinariesNeedsNeitherGoNorModules(t *testing.T) {
	t.Parallel()
	root := published(t)
	beforehand, others, err := open(t, root).Others(t.Context(), linuxARM64)
	if err != nil {
		t.Fatal(err)
	}
	made := Made{
		Binaries: map[string]string{"//cmd/kubectl:kubectl": "/made/kubectl"},
		Licenses: t.TempDir(),
		Status:   []byte(registryKey + " acme.example\n"),
	}
	p, err := OpenMade(t.Context(), root, made)
	if err != nil {
		t.Fatal(err)
	}
	if p.Settings.DockerRegistry != "acme.example" {
		t.Errorf("images are tagged for %q", p.Settings.DockerRegistry)
	}
	req := Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}}
	g := graph(t, p, req)
	for _, name := range others {
		if _, err := g.Plan(t.Context(), action.Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
		place(t, root, name)
	}
	plannable(t, g)
	// The graph has every action of the same release in the tree, except those that ran beforehand.
	done := ids(beforehand)
	want := slices.DeleteFunc(ids(graph(t, open(t, root, "ROAD=bazel"), req)), func(id string) bool {
		return strings.HasPrefix(id, "packages ") || slices.Contains(done, id) && id != "sources"
	})
	if diff := cmp.Diff(want, ids(g)); diff != "" {
		t.Errorf("actions (-Bazel road +made):\n%s", diff)
	}
	licenses := find(t, g, "licenses linux/arm64 components")
	if !slices.Contains(licenses.Inputs, filepath.ToSlash(made.Licenses)+"/") {
		t.Errorf("the licenses are made from %q", licenses.Inputs)
	}
}

// place makes a file, or a folder with a file.
func place(t *testing.T, root, name string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if strings.HasSuffix(name, "/") {
		file = filepath.Join(file, "modules.txt")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
}
