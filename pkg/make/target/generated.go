package target

import (
	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
)

// Generated is the code that is generated from the API packages of a Go module of the tree. Generators write to a folder of the output:
// what is compiled is what the tree has. Without such packages there are no actions.
type Generated struct {
	Module string // folder

	own        *codegen.Own
	generators []*action.Action
}

func (t *Generated) ID() string      { return "generated code " + t.Module }
func (t *Generated) Needs() []Target { return []Target{&PatchedModules{t.Module}} } // API packages import Kubernetes'

// Actions runs the generators.
func (t *Generated) Actions(b *Build) ([]*action.Action, error) {
	m, err := b.module(t.Module)
	if err != nil {
		return nil, err
	}
	t.own, err = codegen.Own{
		Root: b.Root, Module: m.Module, ModFile: m.modFile, Inputs: m.inputs, State: project.Output + "/generated", Go: b.Go,
	}.Load(b.Catalog.Go.Version)
	if err == nil {
		t.generators, err = t.own.Actions()
	}
	return t.generators, err
}

// Outputs returns the folders that the generators write to, relative to the tree's root. Actions has been called.
func (t *Generated) Outputs() []string {
	var folders []string
	for _, a := range t.generators {
		folders = append(folders, a.Outputs...)
	}
	return folders
}

// Stale returns how the tree's generated code differs from what the generators made. They have run.
func (t *Generated) Stale() ([]codegen.Difference, error) { return t.own.Differences(t.generators) }

// Update makes the tree's generated code what the generators made.
func (t *Generated) Update(stale []codegen.Difference) error { return t.own.Sync(stale) }
