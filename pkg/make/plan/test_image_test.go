package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/tree/catalog"
)

// treeWith is the tree with edits of its release.yaml, each a text that occurs once and what takes its place, and more files.
func treeWith(t *testing.T, edits [][2]string, more ...txtar.File) (root string) {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if f.Name != "release/release.yaml" {
			continue
		}
		text := string(f.Data)
		for _, edit := range edits {
			if strings.Count(text, edit[0]) != 1 {
				t.Fatalf("%q occurs %d times", edit[0], strings.Count(text, edit[0]))
			}
			text = strings.Replace(text, edit[0], edit[1], 1)
		}
		return tree(t, append(more, file(f.Name, text))...)
	}
	t.Fatal("no release.yaml")
	return ""
}

// treeWithTestImages is a tree whose release has images for tests: one of a program, one of a base alone.
func treeWithTestImages(t *testing.T) (root string) {
	images := "- {name: e2e/shell, set: test, base: static, version: \"1.0\", created: 2026-02-13T18:39:11Z, arguments: [sh], title: " +
		"Shell}\n" +
		"- {name: e2e/tool, set: test, base: static, binary: tool, version: \"2.0\", created: 2026-02-13T18:39:11Z, title: Tool}\nregistry:"
	binary := "- {name: tool, package: ./dns, module: images/tool, only: [linux/amd64, linux/arm64]}\nimages:"
	return treeWith(t, [][2]string{{"\nregistry:", "\n" + images}, {"\nimages:", "\n" + binary}}, toolFiles()...)
}

// toolFiles are a module with a program.
func toolFiles() []txtar.File {
	return []txtar.File{
		file("images/tool/go.mod", "module slipway.build/images/tool\n\ngo 1.26.0\n"), file("images/tool/go.sum", ""),
		file("images/tool/dns/main.go", "package main\n\nfunc main() {}\n"),
	}
}

func TestImagesForTestsAreInTheTestTarballAlone(t *testing.T) {
	t.Parallel()
	p := open(t, treeWithTestImages(t))
	g := graph(t, p, Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{linuxARM64}})
	plannable(t, g)
	tar := find(t, g, "package kubernetes-test-linux-arm64.tar.gz")
	for _, name := range []string{"shell-1.0.tar", "tool-2.0.tar"} {
		image := "_output/release-images/arm64/" + name
		if !slices.Contains(tar.Inputs, image) || !slices.ContainsFunc(tar.Recipe, func(line string) bool {
			return strings.HasSuffix(line, `.To="test/images/`+name+`"`)
		}) {
			t.Errorf("the test tarball has no %s: %q", name, tar.Recipe)
		}
		if slices.Contains(find(t, g, "package kubernetes-server-linux-arm64.tar.gz").Inputs, image) {
			t.Errorf("the server tarball has %s", name)
		}
	}
	if licenses := "_output/release-stage/licenses/tool/linux-arm64.tar"; !slices.Contains(tar.Inputs, licenses) {
		t.Errorf("the test tarball lacks %s: %q", licenses, tar.Inputs)
	}
	for _, req := range []Request{{Tars: true}, {Images: true}} {
		req.Platforms = []catalog.Platform{linuxARM64}
		for _, id := range ids(graph(t, p, req)) {
			if strings.Contains(id, "tool") || strings.Contains(id, "shell") {
				t.Errorf("%+v has %q", req, id)
			}
		}
	}
}

func TestTreeWithoutAddonsHasNoTarballOfThem(t *testing.T) {
	t.Parallel()
	p := open(t, treeWith(t, [][2]string{{"  test: [linux/amd64, linux/arm64]", "  test: [linux/amd64, linux/arm64]\n  addons: [linux/arm64]"}}))
	for _, id := range ids(graph(t, p, Request{Tars: true, Addons: true, Platforms: []catalog.Platform{linuxARM64}})) {
		if strings.Contains(id, "addons") {
			t.Errorf("there is %q", id)
		}
	}
}

func TestAddonsAreInTarballsOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := open(t, treeWith(t, [][2]string{
		{"  test: [linux/amd64, linux/arm64]", "  addons: [linux/amd64, linux/arm64]"},
		{"\n- {name: e2e.test, test: k8s.io/kubernetes/test/e2e, sets: [test]}", ""},
		{"\n- {name: smoke.test, test: ./smoke, sets: [test]}", ""},
		{"\nimages:", "\n- {name: tool, package: ./dns, module: images/tool, only: [linux/amd64, linux/arm64]}\nimages:"},
		{"\nregistry:", "\n- {name: disk, set: addons, base: static, binary: hyperkube, with: [tool], title: Disk}\n" +
			"addons:\n- {name: storage, module: images/dns, from: example.com/dns, files: [crd.yaml]}\nregistry:"},
		{"hyperkube, only: [linux/arm64]", "hyperkube, only: [linux/amd64, linux/arm64]"},
	}, append(toolFiles(), file("release/addons/storage/disk.yaml", "image: __REGISTRY__/disk:__VERSION__\n"))...))
	g := graph(t, p, Request{Tars: true, Addons: true, Platforms: []catalog.Platform{linuxARM64}})
	plannable(t, g)
	tar := find(t, g, "package kubernetes-addons-linux-arm64.tar.gz")
	for _, want := range []string{
		"_output/release-images/arm64/disk.tar", "_output/release-stage/licenses/addons/linux-arm64.tar",
		"_output/release-stage/licenses/tool/linux-arm64.tar", "_output/release-stage/sources/release/addons/storage/", "images/dns/go.mod",
	} {
		if !slices.Contains(tar.Inputs, want) {
			t.Errorf("the tarball lacks %s: %q", want, tar.Inputs)
		}
	}
	if recipe := strings.Join(tar.Recipe, "\n"); !strings.Contains(recipe, "storage example.com/dns@v1.2.3") {
		t.Errorf("the module's version is not in the recipe: %s", recipe)
	}
	find(t, g, "binaries linux/arm64 tool-addons")
	for _, req := range []Request{{Tars: true}, {Images: true}} {
		req.Platforms = []catalog.Platform{linuxARM64}
		for _, id := range ids(graph(t, p, req)) {
			if strings.Contains(id, "tool") || strings.Contains(id, "hyperkube") || strings.Contains(id, "disk") || strings.Contains(id, "addons") {
				t.Errorf("%+v has %q", req, id)
			}
		}
	}
}
