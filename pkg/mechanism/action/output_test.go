package action

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/statcache"
)

func TestTaskHasPlacesAndSums(t *testing.T) {
	t.Parallel()
	var scratch string
	a := &Action{ID: "a", Inputs: []string{"src", "dir/", "link"}, Outputs: []string{"out/deep/a", "out/tree/"}}
	a.Run = func(_ context.Context, task *Task) error {
		scratch = task.Dir()
		for _, p := range []string{scratch, task.Path("out/tree/"), filepath.Dir(task.Path("out/deep/a"))} {
			if entries, err := os.ReadDir(p); err != nil || (p != filepath.Dir(task.Path("out/deep/a")) && len(entries) > 0) {
				t.Errorf("%s: %v, %v", p, entries, err)
			}
		}
		if base := filepath.Base(task.Path("out/deep/a")); base != "a" {
			t.Errorf("base name %s", base)
		}
		for in, want := range map[string]string{"src": sumOf("s"), "dir/file": sumOf("f"), "link": sumOf("s"), "dir/": "", "x": ""} {
			if got := task.Sum(in); got != want {
				t.Errorf("sum of %s: %q, want %q", in, got, want)
			}
		}
		if err := os.WriteFile(filepath.Join(scratch, "tmp"), nil, 0o666); err != nil {
			return err
		}
		return os.WriteFile(task.Path("out/deep/a"), nil, 0o666)
	}
	b := newBench(t, a)
	b.write("src", "s")
	b.write("dir/file", "f")
	if err := os.Symlink("src", filepath.Join(b.Root, "link")); err != nil {
		t.Fatal(err)
	}
	b.ran("a")
	if _, err := os.Stat(scratch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch folder is still there: %v", err)
	}
}

func TestPreviousIsTheLastOutputIfIntact(t *testing.T) {
	t.Parallel()
	var previous string
	a := join("a", "out/a", "src")
	run := a.Run
	a.Run = func(ctx context.Context, t *Task) error {
		previous = t.Previous("out/a")
		return run(ctx, t)
	}
	b := newBench(t, a)
	b.write("src", "1")
	b.ran("a")
	if previous != "" {
		t.Errorf("previous of a new action: %s", previous)
	}
	b.write("src", "2")
	b.ran("a")
	if want := filepath.Join(b.Root, "out/a"); previous != want {
		t.Errorf("previous %q, want %q", previous, want)
	}
	b.write("out/a", "damaged")
	b.ran("a")
	if previous != "" {
		t.Errorf("previous of a damaged output: %s", previous)
	}
}

func TestOutputMayBeALinkToThePreviousOne(t *testing.T) {
	t.Parallel()
	a := join("a", "out/a", "src")
	run := a.Run
	a.Run = func(ctx context.Context, t *Task) error {
		if previous := t.Previous("out/a"); previous != "" {
			return os.Link(previous, t.Path("out/a"))
		}
		return run(ctx, t)
	}
	b := newBench(t, a)
	b.write("src", "1")
	b.ran("a")
	b.write("src", "2")
	b.ran("a")
	b.ran()
	b.want("out/a", "[1]")
	if stats, err := statcache.Load(filepath.Join(b.Root, b.State, "stat")); err != nil || !trusts(t, stats, b.Root, "out/a") {
		t.Error("the next run would read the output again")
	}
}

// trusts reports whether the cache has a valid entry of a file.
func trusts(t *testing.T, c *statcache.Cache, root, p string) bool {
	t.Helper()
	st, err := statcache.Lstat(filepath.Join(root, p))
	if err != nil {
		t.Fatal(err)
	}
	_, ok := c.Lookup(p, st)
	return ok
}

func TestOutputsAreNotReadAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, join("read", "out/read", "src"), &Action{
		ID: "known", Outputs: []string{"out/known"}, Run: func(_ context.Context, t *Task) error {
			t.SetDigest("out/known", strings.Repeat("12", 32)) // wrong, so that reading the file would show
			return os.WriteFile(t.Path("out/known"), []byte("text"), 0o666)
		},
	})
	b.write("src", "s")
	b.ran("read", "known")
	stats, err := statcache.Load(filepath.Join(b.Root, b.State, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"out/read", "out/known"} {
		if !trusts(t, stats, b.Root, p) {
			t.Errorf("%s would be read again", p)
		}
	}
	b.ran()
	for _, e := range b.events {
		if e.Action == "known" && e.Files[0].SHA256 != strings.Repeat("12", 32) {
			t.Errorf("files: %v", e.Files)
		}
	}
}

func TestDirectoryOutputReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	a := &Action{ID: "a", Inputs: []string{"src/"}, Outputs: []string{"out/tree/"}}
	b := newBench(t, a, join("b", "out/b", "out/tree/one"))
	a.Run = func(_ context.Context, t *Task) error {
		return os.CopyFS(t.Path("out/tree/"), os.DirFS(filepath.Join(b.Root, "src")))
	}
	b.write("src/one", "1")
	b.write("src/sub/two", "2")
	b.ran("a", "b")
	b.want("out/tree/sub/two", "2")
	b.ran()

	if err := os.Remove(filepath.Join(b.Root, "src/sub/two")); err != nil {
		t.Fatal(err)
	}
	b.write("src/three", "3")
	b.ran("a") // its output that b reads is the same
	b.because("a", "inputs changed: src/sub/two (gone) (+1 more)")
	if _, err := os.Lstat(filepath.Join(b.Root, "out/tree/sub/two")); err == nil {
		t.Error("a file of the old directory is still there")
	}
	b.want("out/tree/three", "3")

	b.write("out/tree/extra", "x")
	b.ran("a")
	b.because("a", "output out/tree/ was edited")
	if err := os.RemoveAll(filepath.Join(b.Root, "out/tree")); err != nil {
		t.Fatal(err)
	}
	b.write("out/tree", "a file in its place")
	b.ran("a")
	b.want("out/tree/one", "1")
}

// remembered fails the test if the next run would have to read one of these files.
func (b *bench) remembered(t *testing.T, names ...string) {
	t.Helper()
	stats, err := statcache.Load(filepath.Join(b.Root, b.State, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		st, err := statcache.Lstat(filepath.Join(b.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum, ok := stats.Lookup(name, st); !ok || hex.EncodeToString([]byte(sum)) != b.sum(t, name) {
			t.Errorf("%s: its content would be read again", name)
		}
	}
}

func (b *bench) sum(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return sumOf(string(data))
}

func TestSumsOfFilesInAnOutputDirectoryAreTrusted(t *testing.T) {
	t.Parallel()
	a := &Action{ID: "a", Inputs: []string{"src"}, Outputs: []string{"out/"}, Run: func(_ context.Context, task *Task) error {
		task.SetDigest("out/deep/file", sumOf("another text"))
		return writeFile(filepath.Join(task.Path("out/"), "deep", "file"), "text")
	}}
	b := newBench(t, a)
	b.write("src", "s")
	b.ran("a")
	stats, err := statcache.Load(filepath.Join(b.Root, b.State, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := statcache.Lstat(filepath.Join(b.Root, "out/deep/file"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := stats.Lookup("out/deep/file", st); hex.EncodeToString([]byte(got)) != sumOf("another text") {
		t.Errorf("the runner read the file: %x", got)
	}
	b.ran()
}

func TestLinkedFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	part := &Action{ID: "part", Inputs: []string{"src"}, Outputs: []string{"part/"}}
	part.Run = func(_ context.Context, task *Task) error {
		data, err := os.ReadFile(task.run.absolute("src"))
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(task.Path("part/"), "blob"), string(data))
	}
	whole := &Action{ID: "whole", Inputs: []string{"part/", "other"}, Outputs: []string{"whole/"}}
	whole.Run = func(_ context.Context, task *Task) error { return task.Link("part/blob", "whole/blobs/blob") }
	b := newBench(t, part, whole)
	b.write("src", "1")
	b.write("other", "1")
	b.ran("part", "whole")
	b.want("whole/blobs/blob", "1")
	b.remembered(t, "part/blob", "whole/blobs/blob")
	b.ran()

	// The old directory goes, and with it a link to the file that stays.
	b.write("other", "2")
	b.ran("whole")
	b.remembered(t, "part/blob", "whole/blobs/blob")
	b.write("src", "2")
	b.ran("part", "whole")
	b.want("whole/blobs/blob", "2")

	// An edit of one name is an edit of both, and is noticed.
	f, err := os.OpenFile(filepath.Join(b.Root, "whole/blobs/blob"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b.ran("part", "whole")
	b.want("part/blob", "2")
	b.want("whole/blobs/blob", "2")
}

// Where the file system has no links, and for symbolic links, Link copies. The copy of a program is a program.
func TestCopyInsteadOfALinkHasTheMode(t *testing.T) {
	t.Parallel()
	a := &Action{ID: "a", Inputs: []string{"tool"}, Outputs: []string{"out/"}}
	a.Run = func(_ context.Context, task *Task) error { return task.Link("tool", "out/bin/tool") }
	b := newBench(t, a)
	b.write("program", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(b.Root, "program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("program", filepath.Join(b.Root, "tool")); err != nil {
		t.Fatal(err)
	}
	b.ran("a")
	b.want("out/bin/tool", "#!/bin/sh\n")
	info, err := os.Lstat(filepath.Join(b.Root, "out/bin/tool"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("it is %v, %v, want a file with the mode of the program", info.Mode(), err)
	}
}

// What a cache had a part in does not help to make anything again: it would not be this machine's own.
func TestOutputsOfACacheAreNoPreviousOnes(t *testing.T) {
	t.Parallel()
	var previous string
	graph := func(c Cache, foreign bool) *cachedBench {
		b := newBench(t)
		b.write("in", "1")
		b.Actions = []*Action{{ID: "a", Inputs: []string{"in"}, Outputs: []string{"out"}, Run: func(_ context.Context, t *Task) error {
			previous = t.Previous("out")
			if foreign && t.Cache() != nil {
				t.Use(Derived)
			}
			return os.WriteFile(t.Path("out"), []byte("made"), 0o644)
		}}}
		return &cachedBench{b, c, nil}
	}
	c := newMemory()
	own := graph(c, false)
	own.did("a", "", "")
	own.write("in", "2")
	if own.did("a", "", ""); previous == "" {
		t.Error("an output that was made here is not the previous one")
	}
	own.write("in", "1")
	taken := graph(c, false)
	taken.did("", "a", "a")
	foreign := graph(newMemory(), true)
	foreign.did("a", "", "")
	for what, b := range map[string]*cachedBench{"taken from a cache": taken, "made with parts of a cache": foreign} {
		previous = "not asked"
		b.cache = nil
		b.write("in", "3")
		if b.did("a", "", ""); previous != "" {
			t.Errorf("an output that was %s is the previous one: %q", what, previous)
		}
		b.write("in", "4")
		if b.did("a", "", ""); previous == "" {
			t.Errorf("after an output that was %s, one that was made here is not the previous one", what)
		}
	}
}

// A large file takes another way to its final name than a small one.
func TestLargeFilesAreReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	final, fresh, link := filepath.Join(dir, "final"), filepath.Join(dir, "fresh"), filepath.Join(dir, "link")
	large := func(file, start string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(start), 0o666), os.Truncate(file, largeFile)); err != nil {
			t.Fatal(err)
		}
	}
	starts := func(file, want string) {
		t.Helper()
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 0); err != nil || string(got) != want {
			t.Errorf("%s starts with %q, %v, want %q", file, got, err, want)
		}
	}
	replaced := func() {
		t.Helper()
		if err := replace(final, fresh, filepath.Join(dir, "old")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(fresh); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the temporary name is still there: %v", err)
		}
	}
	large(final, "first")
	if err := os.Link(final, link); err != nil {
		t.Fatal(err)
	}
	large(fresh, "second")
	replaced()
	starts(final, "second")
	starts(link, "first") // another name keeps its content
	if err := os.Link(final, fresh); err != nil {
		t.Fatal(err)
	}
	if err := replace(final, fresh, filepath.Join(dir, "old")); err != nil { // by itself
		t.Fatal(err)
	}
	starts(final, "second")
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink("link", fresh); err != nil {
		t.Fatal(err)
	}
	replaced()
	if target, err := os.Readlink(final); err != nil || target != "link" {
		t.Errorf("a link leads to %q, %v", target, err)
	}
}
