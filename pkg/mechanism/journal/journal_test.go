package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const dir = "out/journal"

// before, changes and after describe one change of every kind.
var (
	before  = map[string]string{"a": "old a", "b/c": "old c", "gone": "old"}
	changes = []Change{
		{Name: "a", Data: []byte("new a"), Mode: 0o644, From: Sum([]byte("old a"))},
		{Name: "b/c", Data: []byte("new c"), Mode: 0o755, From: Sum([]byte("old c"))},
		{Name: "d/e", Data: []byte("new e"), Mode: 0o644},
		{Name: "gone", Remove: true, From: Sum([]byte("old"))},
	}
	after = map[string]string{"a": "new a", "b/c": "new c", "d/e": "new e"}
)

func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range before {
		put(t, root, name, text)
	}
	return root
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files returns what is below root, the journal's folder included.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestApply(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if err := Apply(root, dir, "a change", changes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, files(t, root)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(root, "b", "c"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if title, _, err := Recover(root, dir); title != "" || err != nil {
		t.Errorf("recovered %q, error %v, after a change that was whole", title, err)
	}
}

// A change that is killed after any number of steps is finished by Recover.
func TestKilledChangeIsFinished(t *testing.T) {
	t.Parallel()
	for steps := range len(changes) + 1 {
		root := tree(t)
		j := open(root, dir, "a change")
		if err := j.stage(changes); err != nil {
			t.Fatal(err)
		}
		if !Pending(root, dir) {
			t.Error("a staged change is not pending")
		}
		for i, s := range j.Steps[:steps] {
			if err := j.place(s, s.New, j.content("new", i)); err != nil {
				t.Fatal(err)
			}
		}
		title, undone, err := Recover(root, dir)
		if title != "a change" || undone || err != nil {
			t.Errorf("after %d steps: title %q, undone %v, error %v", steps, title, undone, err)
		}
		if diff := cmp.Diff(after, files(t, root)); diff != "" {
			t.Errorf("after %d steps: %s", steps, diff)
		}
	}
}

// A file that cannot be written, because a folder has its name, undoes those that were.
func TestFailedChangeIsUndone(t *testing.T) {
	t.Parallel()
	root := tree(t)
	blocked := append(changes[:len(changes):len(changes)], Change{Name: "a/below", Data: []byte("x"), Mode: 0o644})
	err := Apply(root, dir, "a change", blocked)
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Error(diff)
	}

	// Also if the file's place was taken after the journal was written.
	root = tree(t)
	j := open(root, dir, "a change")
	if err := j.stage(changes); err != nil {
		t.Fatal(err)
	}
	put(t, root, "d", "a file where a folder is needed")
	title, undone, err := Recover(root, dir)
	if title == "" || !undone || err != nil {
		t.Errorf("title %q, undone %v, error %v", title, undone, err)
	}
	want := map[string]string{"d": "a file where a folder is needed"}
	for name, text := range before {
		want[name] = text
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestEditsAreNotLost(t *testing.T) {
	t.Parallel()
	root := tree(t)
	j := open(root, dir, "a change")
	if err := j.stage(changes); err != nil {
		t.Fatal(err)
	}
	put(t, root, "b/c", "an edit")
	_, _, err := Recover(root, dir)
	if err == nil || !strings.Contains(err.Error(), "was edited") {
		t.Fatal(err)
	}
	if got := files(t, root); got["b/c"] != "an edit" || got["a"] != "old a" {
		t.Errorf("%v", got)
	}
}

// Apply does not replace a file that is not the one that the change was made from, whether it was edited, removed or made.
func TestFilesThatWereEditedAreNotReplaced(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(root string) error{
		"b/c":  func(root string) error { return os.WriteFile(filepath.Join(root, "b", "c"), []byte("an edit"), 0o644) },
		"gone": func(root string) error { return os.Remove(filepath.Join(root, "gone")) },
		"d/e":  func(root string) error { put(t, root, "d/e", "somebody's"); return nil },
	} {
		root := tree(t)
		if err := edit(root); err != nil {
			t.Fatal(err)
		}
		want := files(t, root)
		var edited *EditedError
		if err := Apply(root, dir, "a change", changes); !errors.As(err, &edited) || edited.Name != name {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(want, files(t, root)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The old contents of a change that was interrupted may be the only ones.
func TestPendingChangeIsKept(t *testing.T) {
	t.Parallel()
	root := tree(t)
	j := open(root, dir, "a change")
	if err := j.stage(changes); err != nil {
		t.Fatal(err)
	}
	want := files(t, root)
	var pending *PendingError
	if err := Apply(root, dir, "another", nil); !errors.As(err, &pending) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A disk may lose what it was given. Then nothing else takes its place.
func TestDamagedContentIsNotPutInPlace(t *testing.T) {
	t.Parallel()
	root := tree(t)
	j := open(root, dir, "a change")
	if err := j.stage(changes); err != nil {
		t.Fatal(err)
	}
	put(t, root, dir+"/new1", "")
	title, undone, err := Recover(root, dir)
	if title == "" || !undone || err != nil {
		t.Errorf("title %q, undone %v, error %v", title, undone, err)
	}
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsStagedOutside(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for _, name := range []string{"../x", "/x", "b/../../x", ""} {
		if err := Apply(root, dir, "a change", []Change{{Name: name, Mode: 0o644}}); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestUndoneErrorHasItsCause(t *testing.T) {
	t.Parallel()
	err := &UndoneError{fs.ErrPermission}
	if !errors.Is(err, fs.ErrPermission) || !strings.HasSuffix(err.Error(), "nothing was changed") {
		t.Error(err)
	}
}

// Without syncs of folders, a power failure may undo a rename that the next step counts on.
func TestEachStepIsOnTheDiskBeforeTheNext(t *testing.T) {
	t.Parallel()
	root := tree(t)
	j := open(root, dir, "a change")
	var synced []string // the folder, and what was there at that time
	j.sync = func(folder string) error {
		rel, err := filepath.Rel(root, folder)
		if err != nil {
			return err
		}
		line := filepath.ToSlash(rel) + ":"
		for _, name := range []string{"out", dir, dir + "/" + file, "d", "d/e", "gone"} {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				line += " " + name
			}
		}
		synced = append(synced, line)
		return syncFolder(folder)
	}
	if err := j.stage(changes); err != nil {
		t.Fatal(err)
	}
	if err := j.carryOut(); err != nil {
		t.Fatal(err)
	}
	const journal = " out out/journal out/journal/journal.json"
	want := []string{
		".: out gone", "out: out out/journal gone", // the journal's folder
		"out/journal:" + journal + " gone", // the change counts as made
		".:" + journal + " gone", "b:" + journal + " gone", ".:" + journal + " d gone", "d:" + journal + " d d/e gone",
		".:" + journal + " d d/e",
		"out/journal: out out/journal d d/e", // it is whole, and the rest may go
	}
	if diff := cmp.Diff(want, synced); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(after, files(t, root)); diff != "" {
		t.Error(diff)
	}
}
