package source

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/folder"
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

	// Why says why ID is empty in a git work tree: see [worktree.State].
	Why string

	repo  *worktree.Repo   // nil without git
	seen  map[string]state // of Files, by name
	read  []folder.File    // that have been read already; all of them, if ID is set
	extra []string         // what is beside them and no source, or may be none
}

// Find finds the sources below root. Open opens the repository there.
func Find(ctx context.Context, root string, open worktree.Opener) (*Tree, error) {
	t, err := find(ctx, root, open)
	if err != nil {
		return nil, fmt.Errorf("find sources %s: %w", root, err)
	}
	t.recordStates()
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
// files themselves.
func (t *Tree) Names() []string {
	if t.ID == "" {
		return slices.Clone(t.Files)
	}
	names := make([]string, 0, len(t.read))
	for _, f := range t.read {
		names = append(names, f.Name)
	}
	return names
}

// Content returns a digest of the sources that is the same wherever they are: in the work tree, in its commit, in the tarball, and in the
// folder where that was unpacked. Seen is a digest of all that a build may read in the folder. It differs if
// there is more, such as a file that git ignores. See [folder.Digest].
func (t *Tree) Content(ctx context.Context) (sources, seen string, err error) {
	files, err := t.readAll(ctx)
	if err != nil {
		return "", "", fmt.Errorf("read sources %s: %w", t.Root, err)
	}
	return folder.Digest(files), folder.Digest(files, t.unpacked()...), nil
}

// readAll reads the sources that are not read yet. They are sorted by name.
func (t *Tree) readAll(ctx context.Context) ([]folder.File, error) {
	if t.ID != "" {
		return t.read, nil
	}
	files := slices.DeleteFunc(slices.Clone(t.read), func(f folder.File) bool { return !t.has(f.Name) })
	known := map[string]bool{}
	for _, f := range files {
		known[f.Name] = true
	}
	rest, err := folder.Read(ctx, t.Root, slices.DeleteFunc(t.Names(), func(name string) bool { return known[name] }), nil, nil)
	return slices.SortedFunc(slices.Values(append(files, rest...)), func(a, b folder.File) int { return strings.Compare(a.Name, b.Name) }), err
}

// has reports whether a name is one of Files.
func (t *Tree) has(name string) bool {
	_, found := slices.BinarySearch(t.Files, name)
	return found
}

// unpacked returns what is in the folder, may be read, and is no source.
func (t *Tree) unpacked() []string {
	return slices.DeleteFunc(slices.Clone(t.extra), func(name string) bool {
		folder, ok := strings.CutSuffix(name, "/")
		if !ok {
			return t.has(name)
		}
		return fs.WalkDir(os.DirFS(t.Root), folder, func(file string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !t.has(file) {
				err = fs.ErrExist
			}
			return err
		}) == nil
	})
}

// Sum returns a digest of the content: equal sums mean equal Entries. In a clean git work tree it is the ID.
func (t *Tree) Sum(ctx context.Context) (string, error) {
	if t.ID != "" {
		return t.ID, nil
	}
	sources, _, err := t.Content(ctx)
	return sources, err
}

// Digests returns a line for each source whose name is accepted: the name, the mode, where a link leads, and the SHA-256 of what a file
// holds. They are the same for all trees with the same content.
func (t *Tree) Digests(ctx context.Context, accept func(name string) bool) ([]byte, error) {
	files, err := t.readAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sources %s: %w", t.Root, err)
	}
	var lines []byte
	for _, f := range files {
		if accept(f.Name) {
			lines = append(lines, f.Line()...)
		}
	}
	return lines, nil
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
	t := &Tree{Root: repo.Root, Why: state.Why, repo: repo, read: state.Files}
	if !state.Dirty {
		t.ID = state.Tree
		return t, nil
	}
	t.extra = state.Extra
	t.Files, err = t.listWorkTree(ctx)
	return t, err
}
