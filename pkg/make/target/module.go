package target

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/module"
)

// Patches are the dependencies of a Go module of the tree as patches change them. Without patches they have no actions.
type Patches struct{ Module string } // folder

func (t *Patches) ID() string    { return "patches " + t.Module }
func (*Patches) Needs() []Target { return nil }
func (t *Patches) Actions(b *Build) ([]*action.Action, error) {
	m, err := b.module(t.Module)
	if err != nil || m.patches == nil {
		return nil, err
	}
	return one(m.patches)
}

// A goModule is a Go module of the tree, with the files that every compile in it depends on.
type goModule struct {
	*module.Module
	inputs  []string
	modFile string         // instead of its go.mod, relative to the root; empty without patches
	patches *action.Action // makes modFile; may be nil
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
	b.patch(m)
	b.modules[name] = m
	return m, nil
}

// gatheredModFile is the file, in a folder of gathered licenses, with the go.mod that replaces patched modules; go.sum is beside it.
var gatheredModFile = filepath.Join("patched", patched.ModFile)

// patch makes everything that is compiled in a module take its dependencies as patches change them.
func (b *Build) patch(m *goModule) {
	if b.Gathered != "" { // Bazel has compiled everything already. What it has linked is checked.
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
	m.patches = patched.Action(b.Root, b.Go, b.Generator, spec, m.Module, m.inputs)
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

// Code says which code the packages of a Go module of the tree are made from.
type Code struct {
	Module  *module.Module
	ModFile string           // instead of its go.mod, relative to the root, with go.sum beside it; empty without patches
	Inputs  []string         // what decides it, besides the packages' own files
	Actions []*action.Action // that make ModFile, and patched modules
}

// Code returns the code of a module.
func (b *Build) Code(name string) (*Code, error) {
	m, err := b.module(name)
	if err != nil {
		return nil, err
	}
	actions, err := (&Patches{name}).Actions(b)
	return &Code{m.Module, m.modFile, m.inputs, actions}, err
}
