package target

import (
	"fmt"
	"path/filepath"

	"slipway.build/pkg/make/compile"
	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/mechanism/action"
)

// A Target is something that a release has, or a step to it.
type Target interface {
	ID() string      // unique in a plan
	Needs() []Target // targets of the same plan: what it is made of, and what a release with it must have, too
	Actions(b *Build) ([]*action.Action, error)
}

// An Artifact is a target that release.json describes. Describe adds its entry, and the paths of files that will hold the rest, such as
// digests.
type Artifact interface {
	Target
	Describe(b *Build, d *describe.Spec)
}

// A File is a target that users may ask for by itself.
type File interface {
	Target
	File() (path, name string) // relative to the tree's root; unique among the files of a request
}

// A Build is the context that the targets of one graph share: the project, its modules, the compiler.
type Build struct {
	*project.Project
	Gathered string // a folder with the license files of the components, if Bazel has made it; empty: they are in the module cache

	modules  map[string]*goModule // by folder
	compiler compile.Compiler
}

// NewBuild returns a build of targets into the graph. If packs is set, compiles also compress their binaries for the tarballs.
func NewBuild(p *project.Project, g *action.Graph, packs bool) *Build {
	b := &Build{Project: p, modules: map[string]*goModule{}}
	b.compiler = compile.Compiler{
		Root: p.Root, Measured: g.Measured, Links: relink.Links{Folder: filepath.Join(p.Abs(project.State), "links")},
	}
	if packs {
		b.compiler.Cache = b.ArchiveCache()
	}
	return b
}

// one returns a single action as Actions does.
func one(a *action.Action) ([]*action.Action, error) { return []*action.Action{a}, nil }

// targets converts a slice of one type of target.
func targets[T Target](some []T) []Target {
	all := make([]Target, len(some))
	for i, t := range some {
		all[i] = t
	}
	return all
}

// ThirdParty reports whether a target is of another project than Kubernetes, and so the same in every release with the same version of it.
func (b *Build) ThirdParty(t Target) bool {
	of, ok := t.(interface{ thirdParty(*Build) bool })
	return ok && of.thirdParty(b)
}

// CheckModules returns an error if a module's go.mod replaces a dependency with a folder outside of the tree, which Bazel cannot read. It
// checks the modules that Actions has loaded, so it is called after them.
func (b *Build) CheckModules() error {
	for name, m := range b.modules {
		if outside := m.FolderOutside(); outside != "" {
			return fmt.Errorf("%s/go.mod replaces a module with the folder %s, which is outside of the tree, but Bazel works in a "+
				"copy of it: move the folder into the tree, or use another road", name, outside)
		}
	}
	return nil
}
