package license

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is selected out of gathered files is what Write makes of the module cache.
func TestSelectMakesWhatWriteDoes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{}
	for name, text := range tree {
		files[name] = text
	}
	// No module is replaced by a folder here, and one is listed that is not linked.
	files["src/cmd/go.mod"] = "module own.test/cmd\ngo 1.24\nrequire dep.test/Plain v1.0.0\n"
	files["src/cmd/main.go"] = "package main\nimport _ \"dep.test/Plain/forked/inner\"\nfunc main() {}\n"
	for name, text := range files {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	src := build(t, root)
	list, err := os.ReadFile(src.Packages)
	if err != nil {
		t.Fatal(err)
	}
	more := string(list) + `{"ImportPath": "dep.test/more", "Module": {"Path": "dep.test/more", "Version": "v1.2.0"}}`
	write(t, filepath.Join(src.ModCache, "dep.test", "more@v1.2.0", "COPYING"), "more")
	write(t, src.Packages, more)

	written, gathered, tar := filepath.Join(root, "written.tar"), filepath.Join(root, "gathered"), filepath.Join(root, "selected.tar")
	if err := Write(t.Context(), written, src); err != nil {
		t.Fatal(err)
	}
	if err := Gather(t.Context(), gathered, src); err != nil {
		t.Fatal(err)
	}
	if err := Gather(t.Context(), gathered, src); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with something in it: %v", err)
	}
	if text := read(t, gathered)["vendor/dep.test/more/COPYING"]; text != "more" {
		t.Errorf("the license of what is listed alone is %q", text)
	}
	// From here on there are no modules.
	if err := os.Rename(src.ModCache, src.ModCache+".away"); err != nil {
		t.Fatal(err)
	}
	selected := func() error { return Select(tar, gathered, src.License, src.Modules, nil) }
	if err := selected(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unpacked(t, written), unpacked(t, tar)); diff != "" {
		t.Errorf("files (-written +selected):\n%s", diff)
	}

	name := filepath.Join(gathered, "modules.txt")
	index, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct{ index, want string }{
		"lacks a module": {"dep.test/more\tv1.2.0\tCOPYING\n", "no license of dep.test/Plain@v1.0.0, which is linked"},
		"is of another": {strings.Replace(string(index), "v1.0.0", "v1.0.1", 1),
			"that of dep.test/Plain@v1.0.1, but linked is dep.test/Plain@v1.0.0"},
		"is none":          {"nothing\n", `cannot read "nothing`},
		"names a lost one": {strings.Replace(string(index), "NOTICE", "NOTICES", 1), "NOTICES"},
	} {
		write(t, name, test.index)
		if err := selected(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("an index that %s: %v", what, err)
		}
	}
}

// Binaries of Bazel say of a folder that replaces a module only which version it replaces.
func TestSelectKnowsFoldersByTheGatheredLicenses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	gathered, out := filepath.Join(root, "gathered"), filepath.Join(root, "out.tar")
	for name, text := range map[string]string{
		"LICENSE": "own", "list.json": `[{"path": "x.test/a", "version": "v1.0.0"}]`,
		"gathered/modules.txt": "x.test/a\tlocal\tLICENSE\n", "gathered/vendor/x.test/a/LICENSE": "a", "gathered/go/LICENSE": "go",
		"gathered/go/PATENTS": "go",
	} {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	patches := []Patch{{Name: "patches/1.patch", SHA256: "1234"}}
	if err := Select(out, gathered, filepath.Join(root, "LICENSE"), filepath.Join(root, "list.json"), patches); err != nil {
		t.Fatal(err)
	}
	if got, want := unpacked(t, out)["modules.txt"], "x.test/a\tlocal\tLICENSE\n# patch patches/1.patch sha256:1234\n"; got != want {
		t.Errorf("modules.txt %q, want %q", got, want)
	}
}

func TestGatherRefuses(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	src := Source{ModCache: filepath.Join(root, "mod"), Packages: filepath.Join(root, "packages.json")}
	for what, test := range map[string]struct{ list, want string }{
		"a lost folder": {`{"ImportPath": "x.test/a", "Module": {"Path": "x.test/a", "Version": "v1.0.0", "Replace": {"Path": "../a"}}}`,
			"no folder"},
		"an absent one": {`{"ImportPath": "x.test/a", "Module": {"Path": "x.test/a", "Version": "v1.0.0"}}`, "run go mod download"},
		"no license": {`{"ImportPath": "x.test/b", "Module": {"Path": "x.test/b", "Version": "v1.0.0"}}`,
			"no license file at the root of\n\tx.test/b@v1.0.0"},
		"what is no list": {`[`, "list of packages"},
	} {
		write(t, filepath.Join(src.ModCache, "x.test", "b@v1.0.0", "README"), "")
		write(t, src.Packages, test.list)
		if err := Gather(t.Context(), filepath.Join(root, "out"), src); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
	}
}
