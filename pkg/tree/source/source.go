package source

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/stamp/git"
)

//go:embed *.go
var code embed.FS

// Recipe identifies the code here, which decides which files are sources, and their modes.
var Recipe = recipe.Of(code)

// A Tree is the sources below a folder, as they were when Find looked.
type Tree struct {
	Root string // absolute

	// ID is git's hash of the content, if the tree is a clean git work tree: equal IDs, equal Entries. It is empty
	// otherwise, and then the content is that of Files.
	ID string

	// Files are the paths of all files, if ID is empty: relative to Root, slash-separated, sorted.
	Files []string

	repo *git.Repo       // nil without git
	seen map[string]seen // how the Files were, by name
}

// Find looks for the sources below root. A nil env is os.Getenv; it is what git is found by, see package git.
func Find(ctx context.Context, root string, env func(string) string) (*Tree, error) {
	t, err := find(ctx, root, env)
	if err != nil {
		return nil, fmt.Errorf("find sources %s: %w", root, err)
	}
	t.look()
	return t, nil
}

// Entries are the sources, sorted by name. Those of a clean git work tree have their content in Data, all others in
// the file at Path.
func (t *Tree) Entries(ctx context.Context) ([]archive.Entry, error) {
	read := t.readFiles
	if t.ID != "" {
		read = t.readCommit
	}
	entries, err := read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sources %s: %w", t.Root, err)
	}
	return entries, nil
}

// Names are the paths of all sources in the work tree, as Files has them, also where ID is set: for those who need the
// files themselves. What a sparse checkout has left out is an error, as it is in the commit and not in the work tree.
func (t *Tree) Names(ctx context.Context) ([]string, error) {
	if t.ID == "" {
		return slices.Clone(t.Files), nil
	}
	names, err := t.listWorkTree(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sources %s: %w", t.Root, err)
	}
	return names, nil
}

func find(ctx context.Context, root string, env func(string) string) (*Tree, error) {
	repo, err := git.Open(root, env)
	if errors.Is(err, git.ErrNone) {
		return findUnpacked(ctx, root)
	}
	if err != nil {
		return nil, err
	}
	state, err := repo.State(ctx)
	if err != nil {
		return nil, err
	}
	if state.Dirty {
		return findChanged(ctx, repo)
	}
	return &Tree{Root: repo.Root, ID: state.Tree, repo: repo}, nil
}
