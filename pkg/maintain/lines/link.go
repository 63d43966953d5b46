package lines

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"slipway.build/pkg/tree/module"
)

// link puts folders outside of the line's tree, by which its go.mod files replace modules, where the work tree looks for them: the paths
// are relative, and it lies elsewhere. So ../slipway of a tree is a symbolic link _output/lines/slipway. What cannot be linked is an error.
func (w *Work) link(ctx context.Context) error {
	files, err := w.repo.Run(ctx, nil, "ls-files", "-z", "--", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		folder := path.Dir(name)
		if name == "" || !module.MayBeReleased(folder) {
			continue
		}
		m, err := module.Load(w.Dir, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody has removed it
		}
		if err != nil {
			return err
		}
		for _, r := range m.Replaces {
			to := filepath.Join(filepath.FromSlash(folder), filepath.FromSlash(r.New.Path))
			if r.New.Version != "" || filepath.IsAbs(r.New.Path) || filepath.IsLocal(to) {
				continue
			}
			if err := w.linkFolder(to); err != nil {
				return fmt.Errorf("%s replaces %s by the folder %s, outside of the tree: %w", filepath.Join(w.Dir, name), r.Old.Path,
					r.New.Path, err)
			}
		}
	}
	return nil
}

// linkFolder makes a path relative to the line's tree lead to the same folder from the work tree.
func (w *Work) linkFolder(relative string) error {
	want, here := filepath.Join(w.Line.repo.Root, relative), filepath.Join(w.Dir, relative)
	if _, err := os.Stat(want); err != nil || same(want, here) {
		return nil // a folder that is not there for the tree, either, is for the go command to name
	}
	output := filepath.Join(w.Line.root, filepath.FromSlash(path.Dir(Folder)))
	if below, err := filepath.Rel(output, here); err != nil || !filepath.IsLocal(below) {
		return fmt.Errorf("from the work tree, that would be %s: write it as an absolute path", here)
	}
	if _, err := os.Stat(here); errors.Is(err, fs.ErrNotExist) { // perhaps it is a link that leads nowhere by now
		if err := os.Remove(here); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(here), 0o777); err != nil {
		return err
	}
	if err := os.Symlink(want, here); err != nil {
		return fmt.Errorf("from the work tree, that is another folder, %s: write it as an absolute path", here)
	}
	return nil
}
