package folder

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/mechanism/statcache"
)

//go:embed *.go
var sources embed.FS

// Code identifies the code here.
var Code = recipe.Of("tree/folder", sources)

// A File is a file of a tree, or a symbolic link.
type File struct {
	Name   string      // relative to the root, slash-separated
	Mode   fs.FileMode // 0644, 0755, or that of a link; only the owner's x bit counts
	Link   string      // where a link leads
	SHA256 string      // of the content, in hex; of a link, of nothing
	Blob   string      // git's hash, in hex, if it was asked for
}

// Resolve returns the absolute form of a folder, without symbolic links.
func Resolve(root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(root)
}

// List lists all files below root, a folder that is no link, but those that are never sources. Names are sorted.
func List(ctx context.Context, root string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case Excluded(name, d.Type()) && d.IsDir():
			return fs.SkipDir
		case !Excluded(name, d.Type()) && !d.IsDir():
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names, err
}

// Read reads files below root. Those that are missing, and folders, are left out. A nil blob leaves git's hashes out; otherwise it returns
// a new hash of the repository's kind. If memory is not nil, only files that may have changed since it saw them are read; it is always used
// with the same kind of hash.
func Read(ctx context.Context, root string, names []string, blob func() hash.Hash, memory *statcache.Cache) ([]File, error) {
	files := make([]File, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			f, err := read(root, name, blob, memory)
			if err != nil && !Missing(err) {
				return fmt.Errorf("%s: %w", name, err)
			}
			files[i] = f
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f File) bool { return f.Name == "" }), nil
}

// Missing reports whether an error says that a file is gone, or that a folder above it is a file by now.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// read returns a File without a name if there is a folder of that name.
func read(root, name string, blob func() hash.Hash, memory *statcache.Cache) (File, error) {
	path := filepath.Join(root, filepath.FromSlash(name))
	st, err := statcache.Lstat(path)
	if err != nil || st.Kind == statcache.Directory {
		return File{}, err
	}
	f := File{Name: name, Mode: 0o644}
	switch st.Kind {
	case statcache.Symlink:
		f.Mode = fs.ModeSymlink | 0o777
		if f.Link, err = os.Readlink(path); err != nil {
			return File{}, err
		}
		f.sum(nil, blob)
		return f, nil
	case statcache.Executable:
		f.Mode = 0o755
	case statcache.Other:
		return File{}, errors.New("neither a file nor a symbolic link")
	}
	if memory != nil {
		if sums, ok := memory.Lookup(name, st); ok {
			f.SHA256, f.Blob, _ = strings.Cut(sums, " ")
			return f, nil
		}
	}
	now := time.Now().UnixNano()
	content, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	f.sum(content, blob)
	if after, err := statcache.Lstat(path); memory != nil && err == nil && after == st {
		memory.Remember(name, st, f.SHA256+" "+f.Blob, now)
	}
	return f, nil
}

// sum sets the hashes of a file with some content, or of a link without.
func (f *File) sum(content []byte, blob func() hash.Hash) {
	sum := sha256.Sum256(content)
	f.SHA256 = hex.EncodeToString(sum[:])
	if blob == nil {
		return
	}
	git := blob()
	fmt.Fprintf(git, "blob %d\x00%s", len(content)+len(f.Link), f.Link)
	git.Write(content)
	f.Blob = hex.EncodeToString(git.Sum(nil))
}

// Digest returns one digest of files, in hex: of their names, modes and contents, in any order, and of more names of files whose content
// nothing is known of.
func Digest(files []File, unread ...string) string {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range files {
		h.Write(f.Line())
	}
	for _, name := range slices.Sorted(slices.Values(unread)) {
		fmt.Fprintf(h, "%q\n", name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Line returns a line of text for everything of a file but Blob.
func (f File) Line() []byte {
	return fmt.Appendf(nil, "%q %v %q %s\n", f.Name, f.Mode, f.Link, f.SHA256)
}
