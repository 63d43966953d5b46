package generate

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	makebazel "slipway.build/pkg/make/bazel"
)

// What Bazel reads in this repository, a tree without it gets from the program.
func TestWorkspaceHasWhatThisRepositoryHas(t *testing.T) {
	t.Parallel()
	embedded, err := embeddedFiles()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..")
	names := append(slices.Clone(topFiles), moduleFiles...)
	err = fs.WalkDir(os.DirFS(root), rulesFolder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && slices.Contains([]string{bazelFolder, platformsFolder, rulesFolder + "/packer"}, name):
			return fs.SkipDir // generated from the tree; the packer is this program
		case err == nil && !d.IsDir() && filepath.Ext(name) != ".go":
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if got, ok := embedded[name]; err != nil || !ok || !bytes.Equal(got, want) {
			t.Errorf("%s: there is another one, or none (%v)", name, err)
		}
		delete(embedded, name)
	}
	for name := range embedded {
		t.Errorf("%s: this repository does not have it", name)
	}
}

// A tree without anything of Bazel's, whose components have another module path, gets a workspace that follows its edits.
func TestWorkspaceFollowsTheTree(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for _, name := range append(slices.Clone(topFiles), moduleFiles...) {
		remove(t, root, name)
	}
	replace(t, root, "cmd/go.mod", "module slipway.build/cmd\n", "module acme.example/kubernetes\n")
	dir := makebazel.Workspace(root)
	update := func() {
		t.Helper()
		if stale, err := StaleForBazel(t.Context(), root); err != nil || stale != "" {
			t.Fatalf("%q, %v", stale, err)
		}
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	has := func(name string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if text := read(name); !strings.Contains(text, want) {
				t.Errorf("%s does not have %s:\n%s", name, want, text)
			}
		}
	}
	write(t, root, "cmd/more/more.go", "package more\n")
	write(t, root, "cmd/kubectl/BUILD.bazel", "filegroup(name = \"by_hand\")\n")
	write(t, root, "cmd/kubectl/.#main.go", "a lock of an editor")
	write(t, root, "user.bazelrc", "build --jobs=1\n")
	update()
	has("cmd/BUILD.bazel", "kube-log-runner", "# gazelle:prefix acme.example/kubernetes\n")
	has("cmd/more/BUILD.bazel", `importpath = "acme.example/kubernetes/more"`)
	has("cmd/kubectl/BUILD.bazel", "by_hand", `name = "kubectl",`)
	has("cmd/kubectl/main.go", "package main")
	has("cmd/kubectl/.#main.go", "no such file")
	has("release/release.yaml", "kube-apiserver")
	has("user.bazelrc", "--jobs=1")
	has("build/bazel/generated/config.bzl", `"acme.example/kubernetes": struct(`)
	if program, err := os.Executable(); err != nil || !same(t, program, filepath.Join(dir, "packer")) {
		t.Errorf("the packer is not this program (%v)", err)
	}
	before, err := os.Stat(filepath.Join(dir, "MODULE.bazel"))
	if err != nil {
		t.Fatal(err)
	}

	replace(t, root, "cmd/kubectl/main.go", "import (", "import (\n\t_ \"k8s.io/api/core/v1\"")
	if err := os.RemoveAll(filepath.Join(root, "cmd", "more")); err != nil {
		t.Fatal(err)
	}
	remove(t, root, "user.bazelrc")
	write(t, dir, "build/bazel/old/BUILD.bazel", "of an older slipway")
	update()
	has("build/bazel/old/BUILD.bazel", "no such file")
	has("cmd/kubectl/BUILD.bazel", "by_hand", `"@io_k8s_api//core/v1`)
	has("cmd/more/BUILD.bazel", "no such file")
	has("user.bazelrc", "no such file")
	if after, err := os.Stat(filepath.Join(dir, "MODULE.bazel")); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a file that did not change was written again (%v)", err)
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(b)
	return err == nil && bytes.Equal(one, other)
}
