package bump

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/worktree/gittest"
)

// bumped is a tree and a bump of it with a change of every kind, of which no file is in place.
type bumped struct {
	*gittest.Repo
	*preparation
	undoLog
}

func newBumped(t *testing.T) bumped {
	t.Helper()
	r := gittest.New(t)
	for name, text := range map[string]string{
		".gitignore": "/_output/\n*.o\n", "a": "old a", "b/[c]": "old c", "gone/file": "old", "same": "same",
	} {
		r.Write(name, text)
	}
	if err := os.Symlink("same", filepath.Join(r.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	r.Write("b/ignored.o", "the user's")
	r.Write("untracked", "the user's")
	b := bumped{Repo: r, preparation: &preparation{session: &session{Options: Options{Root: r.Dir, Getenv: r.Env()}}}}
	b.move("Kubernetes", "v1.36.1", "v1.36.2", "")
	if err := b.copyTree(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.copy(t, "a", "new a")
	b.copy(t, "b/[c]", "new c")
	b.copy(t, "d/e", "new e")
	b.copy(t, "ignored.o", "what make writes")
	b.copy(t, "_output/bin/x", "what make writes")
	if err := errors.Join(os.Chmod(b.file("b/[c]"), 0o755), os.Remove(b.file("gone/file"))); err != nil {
		t.Fatal(err)
	}
	changed, added, err := b.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.undoLog = undoLog{b.title(), b.commit, changed, added}
	return b
}

// copy writes a file of the copy.
func (b bumped) copy(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.file(name)), 0o755), b.preparation.write(name, []byte(text))); err != nil {
		t.Fatal(err)
	}
}

// content returns what is in the tree, but in folders of slipway and git.
func (b bumped) content(t *testing.T) map[string]string {
	t.Helper()
	names, err := folder.List(t.Context(), b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(b.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(data)
	}
	return found
}

func (b bumped) check(t *testing.T, when string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, b.content(t)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
	if _, err := os.Stat(workDir(b.Root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: a folder is left: %v", when, err)
	}
	if Pending(b.Root) {
		t.Errorf("%s: it is still pending", when)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	log := undoLog{"Kubernetes v1.36.2", b.commit, []string{"a", "b/[c]", "gone/file"}, []string{"d/e"}}
	if diff := cmp.Diff(log, b.undoLog); diff != "" {
		t.Fatal(diff)
	}
	want := b.content(t)
	want["a"], want["b/[c]"], want["d/e"] = "new a", "new c", "new e"
	delete(want, "gone/file")
	if err := b.apply(t.Context(), b.undoLog); err != nil {
		t.Fatal(err)
	}
	if Pending(b.Root) {
		t.Error("a bump that is whole is pending")
	}
	if diff := cmp.Diff(want, b.content(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Lstat(filepath.Join(b.Dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is left empty: %v", err)
	}
	info, err := os.Stat(filepath.Join(b.Dir, "b", "[c]"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if title, _, err := Recover(t.Context(), b.Root, b.Getenv); title != "" || err != nil {
		t.Errorf("recovered %q, error %v, after a bump that was whole", title, err)
	}
}

// A bump that is killed after any number of files is undone by Recover, and so is one whose undoing is killed after any number of files.
func TestKilledBumpIsUndone(t *testing.T) {
	t.Parallel()
	for steps := range 5 {
		for undone := range steps + 1 {
			b := newBumped(t)
			before := b.content(t)
			names := append(b.Changed, b.Added...)
			if err := b.undoLog.write(b.Root); err != nil {
				t.Fatal(err)
			}
			if !Pending(b.Root) {
				t.Error("a bump that has begun is not pending")
			}
			for _, name := range names[:steps] {
				if err := place(b.Root, name); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range names[:undone] {
				if text, old := before[name]; old {
					b.Write(name, text)
				} else if err := os.Remove(filepath.Join(b.Dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			title, _, err := Recover(t.Context(), b.Root, b.Getenv)
			if title != "Kubernetes v1.36.2" || err != nil {
				t.Errorf("after %d steps: title %q, error %v", steps, title, err)
			}
			b.check(t, "after a kill", before)
			if undone == 0 { // with modes
				if status := b.Git("status", "--porcelain"); strings.TrimSpace(status) != "?? untracked" {
					t.Errorf("after %d steps: git status says %q", steps, status)
				}
			}
		}
	}
}

// A file that cannot be written, because a folder is missing, undoes those that were.
func TestFailedBumpIsUndone(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	b.Write("d", "a file where a folder is needed")
	before := b.content(t)
	err := b.apply(t.Context(), b.undoLog)
	if err == nil || !strings.HasSuffix(err.Error(), "; nothing was changed") {
		t.Errorf("error %v", err)
	}
	b.check(t, "after a failure", before)
}

// What is edited between a kill and the next command stays, whatever the bump had done to the file.
func TestEditsAfterAKillStay(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	want := b.content(t)
	names := append(b.Changed, b.Added...)
	if err := b.undoLog.write(b.Root); err != nil {
		t.Fatal(err)
	}
	for _, name := range names[1:] {
		if err := place(b.Root, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "gone/file", "d/e"} {
		b.Write(name, "an edit")
		want[name] = "an edit"
	}
	if _, _, err := Recover(t.Context(), b.Root, b.Getenv); err != nil {
		t.Fatal(err)
	}
	b.check(t, "after edits", want)
}

// apply does not replace a file that is not the one that was copied, whether it was edited, removed or added, and committed or not.
func TestFilesThatWereEditedAreNotReplaced(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(b bumped){
		"b/[c]":     func(b bumped) { b.Write("b/[c]", "an edit") },
		"a":         func(b bumped) { b.Write("a", "an edit"); b.Repo.Commit() },
		"gone/file": func(b bumped) { b.Git("rm", "-q", "gone/file") },
		"d/e":       func(b bumped) { b.Write("d/e", "the user's") },
	} {
		b := newBumped(t)
		edit(b)
		want := b.content(t)
		if err := b.apply(t.Context(), b.undoLog); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(want, b.content(t)); diff != "" || Pending(b.Root) {
			t.Errorf("%s: pending %v, %s", name, Pending(b.Root), diff)
		}
	}
}

// Git's index may say that files shall not be looked at, or are not in the tree. A bump changes the first, and leaves the others out.
func TestFlagsOfTheIndexHideNoChange(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	for _, name := range []string{"a", "b", "sparse"} {
		r.Write(name, "old")
	}
	r.Commit()
	r.Git("update-index", "--assume-unchanged", "a")
	r.Git("update-index", "--skip-worktree", "b", "sparse")
	if err := os.Remove(filepath.Join(r.Dir, "sparse")); err != nil {
		t.Fatal(err)
	}
	p := &preparation{session: &session{Options: Options{Root: r.Dir, Getenv: r.Env()}}}
	if err := p.copyTree(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := p.write(name, []byte("new")); err != nil {
			t.Fatal(err)
		}
	}
	changed, added, err := p.changes(t.Context())
	if diff := cmp.Diff([]string{"a", "b"}, changed); err != nil || diff != "" || len(added) > 0 {
		t.Errorf("error %v, added %q, changed %s", err, added, diff)
	}
}

// kill puts all files in place, as a bump does that is killed after that.
func (b bumped) kill(t *testing.T) {
	t.Helper()
	if err := b.undoLog.write(b.Root); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(b.Changed, b.Added...) {
		if err := place(b.Root, name); err != nil {
			t.Fatal(err)
		}
	}
}

// The user's index has no part in undoing a bump: it may be locked, or say that a file shall not be looked at.
func TestBumpIsUndoneWhateverTheIndexSays(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	before := b.content(t)
	b.Git("update-index", "--skip-worktree", "a")
	b.Git("update-index", "--assume-unchanged", "b/[c]")
	b.kill(t)
	if err := os.WriteFile(filepath.Join(b.Dir, ".git", "index.lock"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, edited, err := Recover(t.Context(), b.Root, b.Getenv); err != nil || len(edited) > 0 {
		t.Errorf("edited %q, error %v", edited, err)
	}
	b.check(t, "with a locked index", before)
}

func TestWhatWasCommittedAfterAKillStays(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	b.kill(t)
	b.Repo.Commit()
	want := b.content(t)
	if _, edited, err := Recover(t.Context(), b.Root, b.Getenv); err != nil || len(edited) > 0 {
		t.Errorf("edited %q, error %v", edited, err)
	}
	b.check(t, "after a commit", want)
}

func TestRecoverNamesWhatWasEdited(t *testing.T) {
	t.Parallel()
	b := newBumped(t)
	b.kill(t)
	b.Write("a", "an edit")
	_, edited, err := Recover(t.Context(), b.Root, b.Getenv)
	if diff := cmp.Diff([]string{"a"}, edited); err != nil || diff != "" {
		t.Errorf("error %v, edited %s", err, diff)
	}
}

// A bump looks at the files itself, and not at what flags of the index say of them.
func TestEditsThatTheIndexHidesAreRefused(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(r *gittest.Repo){
		"assume-unchanged": func(r *gittest.Repo) { r.Git("update-index", "--assume-unchanged", "a"); r.Write("a", "an edit") },
		"skip-worktree":    func(r *gittest.Repo) { r.Git("update-index", "--skip-worktree", "a"); r.Write("a", "an edit") },
		"staged only":      func(r *gittest.Repo) { r.Write("a", "an edit"); r.Git("add", "a"); r.Write("a", "old") },
		"a new patch":      func(r *gittest.Repo) { r.Write("patches/a.patch", "a patch") },
		"an ignored patch": func(r *gittest.Repo) {
			r.Write(".git/info/exclude", "*.patch")
			r.Write("images/x/patches/a.patch", "a patch")
		},
	} {
		r := gittest.New(t)
		r.Write("a", "old")
		r.Commit()
		hide(r)
		p := &preparation{session: &session{Options: Options{Root: r.Dir, Getenv: r.Env()}}}
		if err := p.copyTree(t.Context()); err == nil || !strings.Contains(err.Error(), "not committed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
