package target

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/published"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/module"
)

// PatchedModules are the patched dependencies of a Go module of the tree. Without patches there are no actions.
type PatchedModules struct{ Module string } // folder

func (t *PatchedModules) ID() string    { return "patches " + t.Module }
func (*PatchedModules) Needs() []Target { return nil }
func (t *PatchedModules) Actions(b *Build) ([]*action.Action, error) {
	m, err := b.module(t.Module)
	if err != nil || m.patchAction == nil {
		return nil, err
	}
	return one(m.patchAction)
}

// A goModule is a Go module of the tree, with the files that every compile in it depends on.
type goModule struct {
	*module.Module
	inputs      []string
	modFile     string         // the go.mod that requires patched modules; empty without patches
	patchAction *action.Action // makes modFile; may be nil
}

// module reads a module of the tree, once.
func (b *Build) module(name string) (*goModule, error) {
	if m := b.modules[name]; m != nil {
		return m, nil
	}
	read, err := module.Load(b.Root, name)
	if err != nil {
		return nil, err
	}
	if err := b.CheckFolders(read); err != nil {
		return nil, err
	}
	inputs, err := read.Inputs()
	if err != nil {
		return nil, err
	}
	m := &goModule{Module: read, inputs: inputs}
	b.usePatched(m)
	b.modules[name] = m
	return m, nil
}

// gatheredModFile is the file, in a folder of gathered licenses, with the go.mod that replaces patched modules; go.sum is beside it.
var gatheredModFile = filepath.Join("patched", patched.ModFile)

// usePatched makes compiles in a module use its patched dependencies.
func (b *Build) usePatched(m *goModule) {
	if b.Gathered != "" { // Bazel has compiled everything, and only licenses are left to gather
		file := filepath.Join(b.Gathered, gatheredModFile)
		if _, err := os.Stat(file); m.Name == b.Catalog.Module && err == nil {
			m.modFile = filepath.ToSlash(file)
		}
		return
	}
	series, ok := b.Patches[m.Name]
	if !ok {
		return
	}
	spec := patched.SpecOf(series, m.Name)
	m.patchAction = patched.Action(b.Root, b.Go, b.Generator, spec, m.Module, m.inputs)
	own := []string{path.Join(m.Name, "go.mod"), path.Join(m.Name, "go.sum")}
	m.inputs = append(spec.Files(), slices.DeleteFunc(m.inputs, func(name string) bool { return slices.Contains(own, name) })...)
	m.modFile = spec.Files()[0]
}

// patchesOf returns the patches of what a module requires, for its licenses.
func (b *Build) patchesOf(m *goModule) []license.Patch {
	var found []license.Patch
	for _, one := range b.Patches[m.Name].Patches {
		found = append(found, license.Patch{Name: one.Name, SHA256: one.SHA256})
	}
	return found
}

// goFlags returns the user's GOFLAGS, with those that have the go command use a module's patched dependencies.
func (b *Build) goFlags(m *goModule) string {
	if m.modFile == "" {
		return b.Settings.Build.GoFlags
	}
	return strings.TrimSpace(road.Spec{Module: m.Name, ModFile: m.modFile}.ModFlag() + " " + b.Settings.Build.GoFlags)
}

// Published is the folder of Kubernetes' modules for programs outside of the tree.
const Published = project.Stage + "/modules"

// PublishModules returns the actions that make [Published] for a release, see [published.Release].
func (b *Build) PublishModules(release string) ([]*action.Action, error) {
	m, err := b.module(b.Catalog.Module)
	if err != nil {
		return nil, err
	}
	actions, err := (&PatchedModules{m.Name}).Actions(b)
	if err != nil {
		return nil, err
	}
	spec := published.Spec{Requires: m.Name, Release: release, Output: Published}
	if m.modFile != "" {
		spec.Requires = path.Dir(m.modFile)
	}
	return append(actions, published.Action(b.Root, b.Go, spec)), nil
}
