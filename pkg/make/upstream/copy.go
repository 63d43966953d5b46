package upstream

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code decides what a copy holds.
var code = recipe.Of("make/upstream", sources)

// Copy puts a copy of the repository into dir, which must not exist or be empty. It is whole only if Copy returns no error: the
// caller makes it under another name, or asks Keep.
func (r *Repository) Copy(ctx context.Context, dir string) error {
	for _, m := range r.Modules { // the one at the top comes first
		if err := copyModule(ctx, m, filepath.Join(dir, filepath.FromSlash(m.Dir))); err != nil {
			return fmt.Errorf("copy %s: %w", m.Version, err)
		}
	}
	return r.leaveOutMissing(dir)
}

// copyModule copies a module, several files at a time. Everything becomes writable.
func copyModule(ctx context.Context, m Module, to string) error {
	copies, ctx := errgroup.WithContext(ctx)
	copies.SetLimit(2 * runtime.GOMAXPROCS(0)) // they mostly wait for the disk
	err := fs.WalkDir(os.DirFS(m.Source), ".", func(name string, e fs.DirEntry, err error) error {
		from, target := filepath.Join(m.Source, filepath.FromSlash(name)), filepath.Join(to, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.IsDir() && name == "vendor":
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(target, 0o777)
		}
		copies.Go(func() error { return copyFile(from, target) })
		return nil
	})
	return cmp.Or(copies.Wait(), err) // a copy that fails ends the walk with its error
}

// copyFile copies a file with its time. It becomes executable if it is a script.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o666)
	if bytes.HasPrefix(data, []byte("#!")) {
		perm = 0o777
	}
	if err := os.WriteFile(to, data, perm); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// leaveOutMissing removes the lines of go.work that name modules that cannot be fetched.
func (r *Repository) leaveOutMissing(dir string) error {
	name := filepath.Join(dir, "go.work")
	if len(r.Missing) == 0 || !exists(name) {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for _, m := range r.Missing {
		data = bytes.Replace(data, []byte("\t./"+m.Dir+"\n"), nil, 1)
	}
	return os.WriteFile(name, data, 0o666)
}
