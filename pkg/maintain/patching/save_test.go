package patching

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/git"
)

// What git cannot read is no file that is missing: Save would otherwise take its change for one of a new file.
func TestFailureOfGitIsNoMissingFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo, err := git.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	const name = "pkg/*.go" // no pattern
	write(t, dir+"/"+name, "package a\n")
	id, err := repo.Commit(t.Context(), "A")
	if err != nil {
		t.Fatal(err)
	}
	there := commitTree{t.Context(), repo, id}
	if data, err := there.ReadFile(name); err != nil || string(data) != "package a\n" {
		t.Errorf("%q, %v", data, err)
	}
	for _, missing := range []string{"pkg/b.go", "pkg", "pkg/*.go/a.go", "?kg/*.go"} {
		if _, err := there.ReadFile(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	lost := commitTree{t.Context(), repo, strings.Repeat("1", 40)}
	if _, err := lost.ReadFile(name); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a commit that git does not have: %v", err)
	}
}
