package transfer

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAddSendsWhatIsNewAndDeletesNothing(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{"not listed": "", "-rf.tmp": ""}.write(t, dir)
	names := odd.write(t, dir)
	there := tree{"kept": "", "dir./kept": "0400|"}
	there.write(t, d.tree)
	must(t, len(odd)-2)(d.remote().Add(t.Context(), "tree", dir, names))
	want := tree{}
	for _, w := range []tree{odd, there} {
		for name, content := range w {
			want[name] = content
		}
	}
	same(t, want, d.tree)
	must(t, 0)(d.remote().Add(t.Context(), "tree", dir, names))
	must(t, 0)(d.remote().Add(t.Context(), "tree", dir, nil))

	if err := os.Remove(filepath.Join(dir, "read-only")); err != nil {
		t.Fatal(err)
	}
	tree{"read-only": "0444|changed"}.write(t, dir)
	want["read-only"] = "0444|changed"
	must(t, 1)(d.remote().Add(t.Context(), "tree", dir, []string{"read-only"}))
	same(t, want, d.tree)
}

func TestAddMakesTheFoldersAboveWritable(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{"a/b/c": "1"}.write(t, dir)
	path := filepath.Join(dir, "a/b")
	if err := os.Chmod(path, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	must(t, 1)(d.remote().Add(t.Context(), "tree", dir, []string{"a/b/c"}))
	if info, err := os.Stat(filepath.Join(d.tree, "a/b")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAddNamesAFileThatDisappearsMeanwhile(t *testing.T) {
	t.Parallel()
	d, dir := newDaemon(t), t.TempDir()
	tree{"a": "1", "b": "2"}.write(t, dir)
	r := d.remote()
	dial := r.Dial
	r.Dial = func(ctx ctx) (connection, error) { return meanwhile(os.Remove(filepath.Join(dir, "b")), dial, ctx) }
	began := time.Now()
	_, err := r.Add(t.Context(), "tree", dir, []string{"a", "b"})
	failing(t, err, began, 0, "rsync to tree: not all files could be transferred", filepath.Join(dir, "b"), "No such file")
}

func TestFileThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root can read everything")
	}
	d, dir := newDaemon(t), t.TempDir()
	names := tree{"a": "1", "secret [x]": "0000|2"}.write(t, dir)
	began := time.Now()
	_, err := d.remote().Mirror(t.Context(), "tree", dir, names)
	failing(t, err, began, 0, "rsync to tree: not all files could be transferred", "secret [x]", "Permission denied")
	_, err = d.remote().Add(t.Context(), "tree", dir, names)
	failing(t, err, began, 0, "rsync to tree: not all files could be transferred", "secret [x]", "Permission denied")
}
