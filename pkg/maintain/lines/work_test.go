package lines

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/worktree/gittest"
)

// The folder of a tree may have any name, one that is a pattern, too.
func TestUnfinishedWorkIsFoundInAnyFolder(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Commit()
	root := filepath.Join(t.TempDir(), "a [b] *")
	dir := filepath.Join(root, filepath.FromSlash(Folder), "acme-1.37")
	r.Git("worktree", "add", "-q", "--detach", dir)
	if got, err := Unfinished(t.Context(), root, r.Env()); err != nil || got != nil {
		t.Errorf("without changes: %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("edited"), 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := Unfinished(t.Context(), root, r.Env())
	if diff := cmp.Diff([]string{dir}, got); err != nil || diff != "" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}
