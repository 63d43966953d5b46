package atomicdir

import (
	"os"
	"path/filepath"
	"testing"
)

// folder makes a folder with a file that holds its text.
func folder(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, parent, want string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(parent, "dir", "file")); err != nil || string(got) != want {
		t.Errorf("the folder holds %q, %v; want %q", got, err, want)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestFolderIsReplaced(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	for _, text := range []string{"first", "second"} {
		folder(t, filepath.Join(parent, "tmp"), text)
		if err := Replace(filepath.Join(parent, "tmp"), filepath.Join(parent, "dir")); err != nil {
			t.Fatal(err)
		}
		check(t, parent, text)
	}
}

func TestFolderIsReplacedInTwoSteps(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	tmp, dir := filepath.Join(parent, "tmp"), filepath.Join(parent, "dir")
	folder(t, dir, "old")
	folder(t, tmp, "new")
	if err := inTwoSteps(tmp, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tmp); err != nil {
		t.Fatal(err)
	}
	check(t, parent, "new")
}

func TestFailureKeepsTheOldFolder(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "dir")
	folder(t, dir, "old")
	if err := Replace(filepath.Join(parent, "none"), dir); err == nil {
		t.Error("a folder that does not exist replaced another")
	}
	if err := inTwoSteps(filepath.Join(parent, "none"), dir); err == nil {
		t.Error("a folder that does not exist replaced another")
	}
	check(t, parent, "old")
}
