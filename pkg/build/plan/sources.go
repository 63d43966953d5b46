package plan

import (
	"strings"

	"slipway.build/pkg/build/pack"
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
	s := pack.CopySpec{ID: sourcesAction, Tree: b.tree.ID, Output: sourceDir}
	for _, name := range b.tree.Files {
		if isCopied(name) {
			s.Inputs = append(s.Inputs, name)
		}
	}
	b.add(pack.CopyAction(s, b.tree.Entries, isCopied, source.Recipe))
}

// treeID identifies the members of the source tarball, together with the sources.
func (p *Project) treeID() string { return p.tree.ID + "\n" + string(stamp.Marshal(p.Stamp)) }

// sourceList are the members of the source tarball: the sources, and the file that says which version they are.
func (p *Project) sourceList() pack.List {
	return pack.List(p.tree.Entries).With(pack.Text{Name: stamp.File, Content: string(stamp.Marshal(p.Stamp))})
}

// kubernetes is the module that has the manifests of e2e tests.
const kubernetes = "k8s.io/kubernetes"

// testManifests are what the test set needs besides binaries: the manifests that upstream's e2e tests read, from the very module they
// were compiled from.
func (b *builder) testManifests() (inputs []string, list pack.List, err error) {
	module, err := b.module(b.Catalog.Module)
	if err != nil {
		return nil, nil, err
	}
	return module.inputs, pack.Module(b.Go, module.Dir, kubernetes, b.Settings.Build.GoFlags, "kubernetes",
		"test/e2e/testing-manifests", "test/kubemark", "LICENSE"), nil
}
