package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/stamp"
)

// sourceDir holds copies of the sources that a release ships unchanged, and of those that images are made from. In a clean tree it
// has the content of the commit, whatever git is configured to ignore or convert in the work tree.
const sourceDir = stage + "/sources"

const sourcesAction = "sources"

// copied lists the sources in sourceDir: files, and folders with a final slash.
var copied = []string{"LICENSE", "README.md", "docs/", "images/", "release/manifests/"}

func isCopied(name string) bool {
	for _, c := range copied {
		if name == c || strings.HasSuffix(c, "/") && strings.HasPrefix(name, c) {
			return true
		}
	}
	return false
}

// Dirty says why the tree is dirty, as in "cmd/a.go is not in the commit", or nothing.
func (p *Project) Dirty() string { return p.tree.Why }

// checkSources returns an error that names what a content takes from the tree and the tree does not have, or that cannot be packed. Actions
// that copy and pack would say so after everything is compiled.
func (p *Project) checkSources(c *content) error {
	var errs []error
	has := map[string]bool{}
	for _, name := range p.tree.Names() {
		if !fs.ValidPath(name) {
			errs = append(errs, fmt.Errorf("the name of the file %q is not UTF-8, so no tarball can hold it: rename it", name))
		}
		has[name] = true
		for dir := path.Dir(name); !has[dir+"/"]; dir = path.Dir(dir) {
			has[dir+"/"] = true
		}
	}
	for _, name := range p.taken(c) {
		if !has[name] {
			errs = append(errs, fmt.Errorf("the tree has no %s, which a release takes from it%s", name, p.ignored(name)))
		}
	}
	return errors.Join(errs...)
}

// ignored says of a missing source that it is in the folder all the same.
func (p *Project) ignored(name string) string {
	if exists(p.abs(name)) {
		return ": there is one, but git ignores it"
	}
	return ""
}

// taken lists the sources that a content cannot be made without: files, and folders with a final slash.
func (p *Project) taken(c *content) []string {
	var taken []string
	if len(c.notices) > 0 {
		taken = append(taken, "LICENSE")
	}
	for _, t := range c.tarballs {
		for _, m := range t.Members {
			if name, ok := strings.CutPrefix(m.From, sourceDir+"/"); ok {
				taken = append(taken, name)
			}
		}
	}
	for _, im := range c.images {
		if im.Base == "" {
			continue
		}
		taken = append(taken, "images/static/rootfs/")
		if p.hasPackages(im.Base) {
			taken = append(taken, slashed("images", im.Base, debian.LockFile))
		}
	}
	slices.Sort(taken)
	return slices.Compact(taken)
}

// checkFolders returns an error if a folder that replaces a module of a clean tree is not among the tree's sources: no commit has it. In a
// dirty tree, which says so in its version, the folder may be anywhere.
func (p *Project) checkFolders(m *module.Module) error {
	if p.tree == nil || p.tree.ID == "" {
		return nil
	}
	names := p.tree.Names()
	for _, dir := range m.Folders() {
		if !slices.Contains(names, path.Join(m.Name, dir, "go.mod")) {
			return fmt.Errorf("%s/go.mod replaces a module by the folder %s, which is not in the commit: move it into the tree, and commit it",
				m.Name, dir)
		}
	}
	return nil
}

// sources adds the action that fills sourceDir.
func (b *builder) sources() {
	s := pack.CopySpec{ID: sourcesAction, Tree: b.tree.ID, Output: sourceDir}
	for _, name := range b.tree.Files {
		if isCopied(name) {
			s.Inputs = append(s.Inputs, name)
		}
	}
	b.add(pack.CopyAction(s, b.tree.Entries, isCopied, source.Code.String()))
}

// sourceList returns the members of the source tarball: the sources, and the file with their version.
func (p *Project) sourceList() pack.List {
	return pack.List(p.tree.Entries).With(func(ctx context.Context) (pack.Text, error) {
		sources, _, err := p.tree.Content(ctx)
		version := stamp.VersionFile{Stamp: p.Stamp, Sources: sources}
		return pack.Text{Name: stamp.File, Content: string(version.Marshal())}, err
	})
}
