package source

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/worktree"
)

//go:embed *.go
var sources embed.FS

// Code identifies the code that decides which files are sources, and their modes.
var Code = recipe.Of("tree/source", sources)

// A Tree is the sources below a folder, as Find saw them.
type Tree struct {
	Root string // absolute

	// ID is git's hash of the content if the tree is a clean git work tree, or else "". Equal IDs mean equal Entries.
	ID string

	// Files are the paths of all files if ID is empty: relative to Root, slash-separated, sorted.
	Files []string

	repo *worktree.Repo   // nil without git
	seen map[string]state // of Files, by name
}

// Find finds the sources below root. Open opens the repository there.
func Find(ctx context.Context, root string, open worktree.Opener) (*Tree, error) {
	t, err := find(ctx, root, open)
	if err != nil {
		return nil, fmt.Errorf("find sources %s: %w", root, err)
	}
	t.look()
	return t, nil
}

// Entries returns the sources, sorted by name. In a clean git work tree they have their content in Data, and otherwise in the
// file at Path.
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

// Names returns the paths of all sources in the work tree, as in Files, also where ID is set. It is for callers that need the
// files themselves, so a file that a sparse checkout left out is an error.
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

// Sum returns a digest of the content: equal sums mean equal Entries. In a clean git work tree it is the ID; otherwise Sum reads
// every file.
func (t *Tree) Sum(ctx context.Context) (string, error) {
	if t.ID != "" {
		return t.ID, nil
	}
	lines, err := t.Digests(ctx, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(lines)), nil
}

// Digests returns a line for each source whose name is accepted: the name, the mode, where a link leads, and the SHA-256 of what a file holds.
// They are the same for all trees with the same content.
func (t *Tree) Digests(ctx context.Context, accept func(name string) bool) ([]byte, error) {
	entries, err := t.Entries(ctx)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, e := range entries {
		if !accept(e.Name) {
			continue
		}
		sum, err := sumOf(e)
		if err != nil {
			return nil, fmt.Errorf("read sources %s: %w", t.Root, err)
		}
		lines = fmt.Appendf(lines, "%q %v %q %x\n", e.Name, e.Mode, e.Link, sum)
	}
	return lines, nil
}

func sumOf(e archive.Entry) ([]byte, error) {
	h := sha256.New()
	if e.Path == "" { // a link, or a file of a commit
		_, _ = h.Write(e.Data) // a hash takes everything
		return h.Sum(nil), nil
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

func find(ctx context.Context, root string, open worktree.Opener) (*Tree, error) {
	repo, err := open()
	if errors.Is(err, worktree.ErrNone) {
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
