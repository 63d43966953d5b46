package source

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"time"

	"slipway.build/pkg/tree/worktree"
)

// A state changes when a file is written.
type state struct {
	size    int64
	mode    fs.FileMode
	written time.Time
}

// recordStates records the states of the files of a tree that is not a commit.
func (t *Tree) recordStates() {
	t.seen = make(map[string]state, len(t.Files))
	for _, name := range t.Files {
		if info, err := os.Lstat(t.path(name)); err == nil {
			t.seen[name] = state{info.Size(), info.Mode(), info.ModTime()}
		}
	}
}

// Changed looks at the tree again, with a new open, and names one change since Find looked: a file, or what happened to the
// commit. It returns "" if nothing changed.
func (t *Tree) Changed(ctx context.Context, open worktree.Opener) (string, error) {
	now, err := Find(ctx, t.Root, open)
	switch {
	case err != nil:
		return "", err
	case t.ID != now.ID && t.ID != "" && now.ID != "":
		return "another commit is checked out", nil
	case t.ID != "" && now.ID == "":
		return "it no longer matches its commit", nil
	case t.ID == "" && now.ID != "":
		return "it is now what its commit is", nil
	}
	for _, name := range slices.Concat(now.Files, t.Files) {
		if t.seen[name] != now.seen[name] {
			return name, nil
		}
	}
	return "", nil
}
