package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

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

func TestThirdPartyPlansTheArtifactsOfOtherProjects(t *testing.T) {
	t.Parallel()
	g, made, err := ThirdParty(t.Context(), open(t, published(t)), linuxARM64)
	if err != nil {
		t.Fatal(err)
	}
	plannable(t, g)
	slices.Sort(made)
	want := []string{
		"_output/local/bin/linux/arm64/dns", "_output/local/bin/linux/arm64/dnsctl",
		"_output/release-stage/debian/odd/linux-arm64.tar", "_output/release-stage/licenses/debian/linux-arm64/",
		"_output/release-stage/licenses/dns/linux-arm64.tar",
		"_output/release-stage/spdx/debian/odd/linux-arm64.json", "_output/release-stage/spdx/dns/linux-arm64.json",
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
	if _, _, err := ThirdParty(t.Context(), open(t, tree(t)), linuxARM64); err != nil {
		t.Errorf("a folder in place of a module: error %v", err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "go.mod"), []byte("module example.com/dns\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	away := file("images/dns/go.mod", "module slipway.build/images/dns\n\ngo 1.26.0\n\nrequire example.com/dns v1.2.3\n\n"+
		"replace example.com/dns => "+filepath.ToSlash(outside)+"\n")
	if _, _, err := ThirdParty(t.Context(), open(t, tree(t, away)), linuxARM64); err == nil ||
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
	err := GatherLicenses(t.Context(), open(t, tree(t, away)), t.TempDir(), linuxARM64)
	if err == nil || !strings.Contains(err.Error(), outside+", which is outside of the tree") {
		t.Errorf("a folder outside of the tree in place of a module: error %v", err)
	}
}

func TestPackingMadeBinariesNeedsNeitherGoNorModules(t *testing.T) {
	t.Parallel()
	root := published(t)
	beforehand, others, err := ThirdParty(t.Context(), open(t, root), linuxARM64)
	if err != nil {
		t.Fatal(err)
	}
	made := Prebuilt{
		Binaries: map[string]string{"//cmd/kubectl:kubectl": "/made/kubectl"},
		Licenses: t.TempDir(),
		Status:   []byte("STABLE_KUBE_DOCKER_REGISTRY acme.example\n"),
	}
	planned, err := Pack(t.Context(), root, made, linuxARM64)
	if err != nil {
		t.Fatal(err)
	}
	const tag = `Tags[1]="acme.example/kube-apiserver:v1.36.3_acme.1"`
	if got := find(t, planned.Graph, "image linux/arm64 kube-apiserver").Recipe; !slices.Contains(got, tag) {
		t.Errorf("no %s in %q", tag, got)
	}
	req := Request{Tars: true, Platforms: []catalog.Platform{linuxARM64}}
	g := planned.Graph
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
