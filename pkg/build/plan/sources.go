package plan

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/source"
)

// sourceDir is a copy of the sources that a release holds as they are, and of those of images. In a clean tree it is what
// the commit says, whatever git was told to ignore or convert in the work tree.
const sourceDir = stage + "/sources"

// copied are the sources that are copied there: files, and folders with a final slash.
var copied = []string{"LICENSE", "README.md", "docs/", "images/", "release/manifests/"}

func isCopied(name string) bool {
	for _, c := range copied {
		if name == c || strings.HasSuffix(c, "/") && strings.HasPrefix(name, c) {
			return true
		}
	}
	return false
}

// sources plans the copy of the sources that a release holds.
func (b *builder) sources() {
	var inputs []string
	for _, name := range b.tree.Files {
		if isCopied(name) {
			inputs = append(inputs, name)
		}
	}
	b.add(&action.Action{
		ID:      "sources",
		Phase:   "sources",
		Recipe:  []string{Recipe, source.Recipe, "tree " + b.tree.ID},
		Inputs:  inputs,
		Outputs: []string{sourceDir + "/"},
		Run: func(ctx context.Context, t *action.Task) error {
			entries, err := b.tree.Entries(ctx)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if !isCopied(e.Name) {
					continue
				}
				if err := copySource(e, filepath.Join(t.Path(sourceDir+"/"), filepath.FromSlash(e.Name))); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func copySource(e archive.Entry, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if e.Link != "" {
		return os.Symlink(e.Link, to)
	}
	data := e.Data
	if e.Path != "" {
		var err error
		if data, err = os.ReadFile(e.Path); err != nil {
			return err
		}
	}
	return os.WriteFile(to, data, e.Mode.Perm())
}
