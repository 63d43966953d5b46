package plan

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/build/pack"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/stamp"
)

// sourceDir is a copy of the sources that a release holds as they are, and of those of images. In a clean tree it is what
// the commit says, whatever git was told to ignore or convert in the work tree.
const sourceDir = stage + "/sources"

const sourcesAction = "sources"

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
		ID:      sourcesAction,
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

// treeID identifies the members of the source tarball, together with the sources.
func (p *Project) treeID() string { return p.tree.ID + "\n" + string(stamp.Marshal(p.Stamp)) }

// sourceEntries are the members of the source tarball: the sources, and the file that says which version they are.
func (p *Project) sourceEntries(ctx context.Context) ([]archive.Entry, error) {
	entries, err := p.tree.Entries(ctx)
	return append(entries, archive.Entry{Name: stamp.File, Mode: 0o644, Data: stamp.Marshal(p.Stamp)}), err
}

// kubernetes is the module that has the manifests of e2e tests.
const kubernetes = "k8s.io/kubernetes"

// testManifests are what the test set needs besides binaries: the manifests that upstream's e2e tests read, from the very module they
// were compiled from.
func (b *builder) testManifests() (inputs []string, list func(context.Context) ([]archive.Entry, error), err error) {
	module, err := b.module(b.Catalog.Module)
	if err != nil {
		return nil, nil, err
	}
	return module.inputs, func(ctx context.Context) ([]archive.Entry, error) {
		g, err := b.Go(ctx, nil)
		if err != nil {
			return nil, err
		}
		dir, err := g.ModuleDir(ctx, module.Dir, kubernetes, b.Settings.Build.GoFlags)
		if err != nil {
			return nil, err
		}
		var entries []archive.Entry
		for _, part := range []string{"test/e2e/testing-manifests", "test/kubemark"} {
			more, err := pack.Folder(filepath.Join(dir, filepath.FromSlash(part)), "kubernetes/"+part, func(string) string { return "" })
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		}
		return append(entries, archive.Entry{Name: "kubernetes/LICENSE", Mode: 0o644, Path: filepath.Join(dir, "LICENSE")}), nil
	}, nil
}
