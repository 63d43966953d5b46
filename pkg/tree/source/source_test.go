package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/tree/worktree"
	"slipway.build/pkg/tree/worktree/gittest"
)

// committed holds the sources in repository by name: mode and content, or target.
var committed = map[string]string{
	".gitignore":          "0644 /_output/\n*.tmp\n/bazel-*\n",
	"Makefile":            "0644 all:\n",
	"build.sh":            "0755 #!/bin/sh\n",
	"cmd/kubectl/main.go": "0644 package main\n",
	"cmd/link":            "link kubectl/main.go",
	"cmd/version":         "0644 not at the top\n",
	"dangling":            "link no/where",
	"empty":               "0644 ",
	"odd/a b\n\"c\"\\'\t": "0644 odd\n",
	"odd/ünï-日本":          "0644 unicode\n",
	"bazel-notes.md":      "0644 a file, no link\n",
}

func TestCleanTreeIsItsCommit(t *testing.T) {
	t.Parallel()
	r := repository(t)
	tree := treeOf(t, r)
	if want := r.Git("rev-parse", "HEAD^{tree}"); tree.ID != want || tree.Files != nil {
		t.Errorf("ID = %q, Files = %q, want %q and none", tree.ID, tree.Files, want)
	}
	same(t, committed, tree)
}

func TestCleanTreeIsReadFromTheCommitAlone(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write(".gitattributes", "empty export-ignore\n")
	r.Write("subst", "$Format:%H$ $Id$\n")
	r.Write(".git/info/attributes", "subst export-subst\n")
	r.Commit()
	r.Git("config", "core.autocrlf", "true") // the files are there already
	r.Git("config", "tar.umask", "077")
	tree := treeOf(t, r)
	if tree.ID == "" {
		t.Fatalf("the tree is not clean: %s", tree.Why)
	}
	r.Write("Makefile", "changed after Find\n")
	want := maps.Clone(committed)
	want[".gitattributes"] = "0644 empty export-ignore\n"
	want["subst"] = "0644 $Format:%H$ $Id$\n"
	same(t, want, tree)
}

func TestChangedTreeIsWhatGitWouldTrack(t *testing.T) {
	t.Parallel()
	r := repository(t)
	want := maps.Clone(committed)

	r.Write("Makefile", "changed\n")
	want["Makefile"] = "0644 changed\n"
	r.Write("new/file", "new\n")
	want["new/file"] = "0644 new\n"
	r.Write("staged", "staged\n")
	r.Git("add", "staged")
	want["staged"] = "0644 staged\n"
	r.Write("ignored.tmp", "")
	r.Write("_output/bin/kubectl", "")
	r.Write("version", "the caller's\n")
	remove(t, r, "empty")
	delete(want, "empty")
	remove(t, r, "build.sh")
	r.Write("build.sh/part", "a folder now\n")
	delete(want, "build.sh")
	want["build.sh/part"] = "0644 a folder now\n"
	remove(t, r, "cmd/kubectl")
	link(t, r, "../odd", "cmd/kubectl")
	r.Write("odd/main.go", "seen through a link\n")
	delete(want, "cmd/kubectl/main.go")
	want["cmd/kubectl"] = "link ../odd"
	want["odd/main.go"] = "0644 seen through a link\n"

	tree := treeOf(t, r)
	if tree.ID != "" {
		t.Errorf("ID = %q, want none", tree.ID)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), tree.Files); diff != "" {
		t.Error(diff)
	}
	same(t, want, tree)
}

func TestNamesAreThoseOfTheEntriesInEveryTree(t *testing.T) {
	t.Parallel()
	clean := repository(t)
	clean.Write("_output/bin/kubectl", "")

	changed := repository(t)
	changed.Write("new/file", "new\n")
	remove(t, changed, "empty")

	packed := filepath.Join(t.TempDir(), "unpacked")
	unpacked := repository(t).At(packed)
	for name := range committed {
		unpacked.Write(name, "")
	}
	unpacked.Write("_output/bin/kubectl", "")

	all := slices.Sorted(maps.Keys(committed))
	for what, test := range map[string]struct {
		repo *gittest.Repo
		want []string
	}{
		"clean": {clean, all},
		"changed": {changed, slices.Sorted(slices.Values(append(slices.DeleteFunc(slices.Clone(all),
			func(n string) bool { return n == "empty" }), "new/file")))},
		"unpacked": {unpacked, all},
	} {
		tree := treeOf(t, test.repo)
		names := tree.Names()
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		entries, err := tree.Entries(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !slices.EqualFunc(names, entries, func(n string, e archive.Entry) bool { return n == e.Name }) {
			t.Errorf("%s: the names are not those of the entries", what)
		}
		if clean := tree.ID != ""; clean != (what == "clean") {
			t.Errorf("%s: ID = %q", what, tree.ID)
		}
	}
}

func TestContentIsTheSameWhereverItIs(t *testing.T) {
	t.Parallel()
	r := repository(t)
	clean, _ := digests(t, treeOf(t, r))
	r.Write("Makefile", "changed\n")
	changed, seen := digests(t, treeOf(t, r))
	if changed == clean || changed != seen {
		t.Errorf("a changed tree has the content %s, its folder %s, and the commit %s", changed, seen, clean)
	}
	r.Commit()
	committed, seen := digests(t, treeOf(t, r))
	if committed != changed || seen != changed {
		t.Errorf("committed, it is %s, and its folder %s; it was %s", committed, seen, changed)
	}
	r.Write("new/a.go", "package a\n")
	if packed, seen := digests(t, treeOf(t, r)); packed != seen || packed == changed {
		t.Errorf("with a new file in a new folder, it is %s, and its folder %s", packed, seen)
	}
	r.Write("new/a.tmp", "ignored, and read by who knows what")
	if packed, seen := digests(t, treeOf(t, r)); packed == seen {
		t.Error("a file that git ignores is in no digest")
	}
}

func digests(t *testing.T, tree *Tree) (sources, seen string) {
	t.Helper()
	sources, seen, err := tree.Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sources, seen
}

func TestLeavingsOfEditorsAreNoSources(t *testing.T) {
	t.Parallel()
	r := repository(t)
	for _, name := range []string{"cmd/#main.go#", "cmd/main.go~", "cmd/.main.go.swp", "odd/.DS_Store"} {
		r.Write(name, "")
	}
	link(t, r, "me@here.1234", "cmd/.#main.go")
	r.Write("cmd/.hidden", "")
	want := maps.Clone(committed)
	want["cmd/.hidden"] = "0644 "
	tree := treeOf(t, r)
	if tree.ID != "" {
		t.Error("it is clean")
	}
	same(t, want, tree)
}

func TestConflictedFileIsListedOnce(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Git("checkout", "-q", "-b", "other")
	r.Write("Makefile", "theirs\n")
	r.Commit()
	r.Git("checkout", "-q", "main")
	r.Write("Makefile", "ours\n")
	r.Commit()
	// A conflict without git merge, which would fail the test with its exit status.
	ours, theirs := r.Git("rev-parse", "main:Makefile"), r.Git("rev-parse", "other:Makefile")
	stage(t, r, "0 "+strings.Repeat("0", 40)+"\tMakefile\n100644 "+ours+" 2\tMakefile\n100644 "+theirs+" 3\tMakefile\n")
	r.Write("Makefile", "both\n")
	want := maps.Clone(committed)
	want["Makefile"] = "0644 both\n"
	tree := treeOf(t, r)
	same(t, want, tree)
}

func TestUnpackedTarballHasTheSameSources(t *testing.T) {
	t.Parallel()
	gnu := needs.Program(t, "tar")
	r := repository(t)
	packed := filepath.Join(t.TempDir(), "src.tar")
	pack(t, packed, treeOf(t, r))

	// Unpacked inside another repository, as somebody with a strict umask.
	outer := repository(t)
	dir := filepath.Join(outer.Dir, "kubernetes dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `umask 077; exec "$0" -xf "$1" -C "$2" --no-same-permissions --no-same-owner`, gnu, packed, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	unpacked := outer.At(dir)
	if info, err := os.Stat(filepath.Join(dir, "build.sh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the umask had no effect: %v, %v", info, err)
	}

	// The remains of a build are not sources.
	unpacked.Write("_output/bin/kubectl", "")
	unpacked.Write("version", "KUBE_GIT_VERSION='v1.36.3'\n")
	link(t, unpacked, "/nowhere", "bazel-out")

	tree := treeOf(t, unpacked)
	if tree.ID != "" {
		t.Errorf("ID = %q, want none", tree.ID)
	}
	same(t, committed, tree)
	repacked := filepath.Join(t.TempDir(), "src.tar")
	pack(t, repacked, tree)
	if a, b := read(t, packed), read(t, repacked); !bytes.Equal(a, b) {
		t.Error("the tarball packed from an unpacked one differs")
	}
}

func TestShallowCloneHasTheSameSources(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write("Makefile", "first:\n")
	r.Commit()
	clone := treeOf(t, r.Clone("--depth=1"))
	if tree := treeOf(t, r); tree.ID != clone.ID || tree.ID == "" {
		t.Errorf("ID = %q, and in the clone %q", tree.ID, clone.ID)
	}
	want := maps.Clone(committed)
	want["Makefile"] = "0644 first:\n"
	same(t, want, clone)
}

func TestCommitWithoutFiles(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Commit()
	same(t, map[string]string{}, treeOf(t, r))
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	submodule := func(t *testing.T, r *gittest.Repo) {
		r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", repository(t).Dir, "sub")
		r.Commit()
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, r *gittest.Repo)
		root    string
		want    string
	}{
		{"submodule in a clean tree", submodule, "", "sub: a submodule"},
		{"submodule in a changed tree", func(t *testing.T, r *gittest.Repo) {
			submodule(t, r)
			r.Write("Makefile", "changed\n")
		}, "", "sub: a submodule"},
		{"repository inside", func(t *testing.T, r *gittest.Repo) {
			r.At(filepath.Join(r.Dir, "cmd")).Git("init", "-q", "inner")
			r.At(filepath.Join(r.Dir, "cmd/inner")).Git("commit", "-q", "--allow-empty", "-m", "x")
		}, "", "cmd/inner/: a git repository inside the work tree"},
		{"sparse checkout", func(_ *testing.T, r *gittest.Repo) {
			r.Git("sparse-checkout", "set", "--no-cone", "/*", "!/cmd/")
		}, "", "left out by a sparse checkout; run: git sparse-checkout disable"},
		{"a pipe in an unpacked tree", func(t *testing.T, r *gittest.Repo) {
			r.Write("_output/unpacked/Makefile", "")
			if out, err := exec.Command("mkfifo", filepath.Join(r.Dir, "_output/unpacked/pipe")).CombinedOutput(); err != nil {
				t.Skipf("mkfifo: %v: %s", err, out)
			}
		}, "_output/unpacked", "pipe: neither a file nor a symbolic link"},
		{"no folder", func(*testing.T, *gittest.Repo) {}, "none", "no such file"},
		{"a file", func(*testing.T, *gittest.Repo) {}, "Makefile", "not a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := repository(t)
			test.prepare(t, r)
			root := filepath.Join(r.Dir, test.root)
			tree, err := Find(context.Background(), root, worktree.Once(root, r.Env()))
			if err == nil {
				_, err = tree.Entries(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), root) {
				t.Errorf("err = %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestFileThatVanishesIsAnError(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write("new", "")
	tree := treeOf(t, r)
	remove(t, r, "new")
	if _, err := tree.Entries(context.Background()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v, want %v", err, fs.ErrNotExist)
	}
}

func repository(t *testing.T) *gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	for name, form := range committed {
		kind, content, _ := strings.Cut(form, " ")
		if kind == "link" {
			link(t, r, content, name)
			continue
		}
		r.Write(name, content)
		if kind == "0755" {
			if err := os.Chmod(filepath.Join(r.Dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Git("add", "-f", "bazel-notes.md")
	r.Commit()
	return r
}

func treeOf(t *testing.T, r *gittest.Repo) *Tree {
	t.Helper()
	tree, err := Find(context.Background(), r.Dir, worktree.Once(r.Dir, r.Env()))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// same compares a tree's entries with those wanted, which are written as in committed.
func same(t *testing.T, want map[string]string, tree *Tree) {
	t.Helper()
	entries, err := tree.Entries(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(entries, func(a, b archive.Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the entries are not sorted")
	}
	got := map[string]string{}
	for _, e := range entries {
		if _, ok := got[e.Name]; ok {
			t.Errorf("duplicate %q", e.Name)
		}
		switch e.Mode {
		case 0o644:
			got[e.Name] = "0644 " + string(content(t, e))
		case 0o755:
			got[e.Name] = "0755 " + string(content(t, e))
		case fs.ModeSymlink | 0o777:
			got[e.Name] = "link " + e.Link
		default:
			t.Errorf("%q has mode %s", e.Name, e.Mode)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func content(t *testing.T, e archive.Entry) []byte {
	t.Helper()
	if e.Path == "" {
		return e.Data
	}
	return read(t, e.Path)
}

func pack(t *testing.T, name string, tree *Tree) {
	t.Helper()
	entries, err := tree.Entries(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Mode: int64(e.Mode.Perm()), ModTime: gittest.Time, Typeflag: tar.TypeReg}
		data := []byte{}
		if e.Mode&fs.ModeSymlink != 0 {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		} else {
			data = content(t, e)
		}
		h.Size = int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// stage writes entries, such as conflicts, into the index.
func stage(t *testing.T, r *gittest.Repo, info string) {
	t.Helper()
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(info)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func remove(t *testing.T, r *gittest.Repo, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(r.Dir, name)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, r *gittest.Repo, target, name string) {
	t.Helper()
	path := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
