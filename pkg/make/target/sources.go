package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/source"
)

// sources holds copies of the sources that a release ships unchanged, and of those that images are made from. In a clean tree it
// has the content of the commit, whatever git is configured to ignore or convert in the work tree.
const sources = project.Stage + "/sources"

// copied lists the sources there: files, and folders with a final slash.
var copied = []string{"LICENSE", "README.md", "docs/", "images/", "release/addons/", "release/defaults/", "release/manifests/",
	catalog.PackageFolder + "/"}

func isCopied(name string) bool {
	return slices.ContainsFunc(copied, func(c string) bool {
		return name == c || strings.HasSuffix(c, "/") && strings.HasPrefix(name, c)
	})
}

// Sources are copies of sources that other targets are made of.
type Sources struct{}

func (*Sources) ID() string      { return "sources" }
func (*Sources) Needs() []Target { return nil }

// Actions copies the sources.
func (t *Sources) Actions(b *Build) ([]*action.Action, error) {
	s := pack.CopySpec{ID: t.ID(), Tree: b.Project.Sources.ID, Output: sources}
	for _, name := range b.Project.Sources.Files {
		if isCopied(name) {
			s.Inputs = append(s.Inputs, name)
		}
	}
	return one(pack.CopyAction(s, b.Project.Sources.Entries, isCopied, source.Code.String()))
}

// Optional lists sources that a release has only if the tree does: files, and folders with a final slash.
var Optional = []string{"README.md", ownLicense, "docs/"}

// ownLicense has the terms of the tree's own code.
const ownLicense = "LICENSE"

// Has reports whether a tree has a source: a file, or something in a folder, whose name has a final slash.
func Has(p *project.Project, source string) bool {
	return slices.ContainsFunc(p.Sources.Names(), func(name string) bool {
		return name == source || strings.HasSuffix(source, "/") && strings.HasPrefix(name, source)
	})
}

// CheckSources returns an error that names each source that actions take and the tree does not have, and each that cannot be packed. The
// actions would say so after everything is compiled.
func CheckSources(p *project.Project, actions []*action.Action) error {
	var errs []error
	has := map[string]bool{}
	for _, name := range p.Sources.Names() {
		if !fs.ValidPath(name) {
			errs = append(errs, fmt.Errorf("the name of the file %q is not UTF-8, so no tarball can hold it: rename it", name))
		}
		has[name] = true
		for dir := path.Dir(name); !has[dir+"/"]; dir = path.Dir(dir) {
			has[dir+"/"] = true
		}
	}
	var taken []string
	for _, a := range actions {
		for _, in := range a.Inputs {
			if name, ok := strings.CutPrefix(in, sources+"/"); ok && !has[name] {
				taken = append(taken, name)
			}
		}
	}
	slices.Sort(taken)
	for _, name := range slices.Compact(taken) {
		hint := ""
		if _, err := os.Stat(p.Abs(name)); err == nil {
			hint = ": there is one, but git ignores it"
		}
		errs = append(errs, fmt.Errorf("the tree has no %s, which a release takes from it%s", name, hint))
	}
	return errors.Join(errs...)
}
