package plan

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// proxies returns the folders that have patched modules, once they are made.
func (p *Project) proxies() []string {
	var folders []string
	for _, name := range p.patchedModules() {
		folders = append(folders, p.abs(slashed(patched.Dir(name), patched.Proxy)))
	}
	return folders
}

// placePatched puts the components' patched modules into the module cache, if they are made.
func (p *Project) placePatched(ctx context.Context, g *toolchain.Go) error {
	name := p.Catalog.Module
	s, ok := p.patches[name]
	if !ok {
		return nil
	}
	list, err := patched.Made(p.Root, patched.SpecOf(s, name))
	if errors.Is(err, patched.ErrStale) {
		return nil // a command of Bazel's that compiles nothing needs none
	}
	if err != nil {
		return err
	}
	return list.Place(ctx, g)
}

// patchedModules returns the folders of the Go modules whose dependencies are patched, sorted.
func (p *Project) patchedModules() []string { return slices.Sorted(maps.Keys(p.patches)) }

// CheckPatches returns an error that names each patch of the tree that does not apply, and why. It remembers what it has checked in
// _output, since patches and modules seldom change.
func (p *Project) CheckPatches(ctx context.Context) error {
	var errs []error
	for _, name := range p.patchedModules() {
		errs = append(errs, p.checkPatches(ctx, name))
	}
	return errors.Join(errs...)
}

// KnowPatches remembers that the patches apply that a plan needs, after it was carried out: they were applied, or a result was taken of
// somebody who has applied them.
func (p *Project) KnowPatches(planned *Plan) error {
	var errs []error
	for _, name := range p.patchedModules() {
		made := patched.SpecOf(p.patches[name], name).Files()[0]
		if !slices.ContainsFunc(planned.Graph.Actions, func(a *action.Action) bool { return slices.Contains(a.Outputs, made) }) {
			continue
		}
		key, file, err := p.patchCheck(name)
		if err == nil {
			err = remember(key, file)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func remember(key, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, []byte(key), 0o666)
}

// patchCheck returns the key of a check of a module's patches, and the file that has it if they apply.
func (p *Project) patchCheck(name string) (key, file string, err error) {
	spec := patched.SpecOf(p.patches[name], name)
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{patched.Code.String(), spec}); err != nil {
		return "", "", err
	}
	requirements, err := module.Digest(p.abs(name))
	if err != nil {
		return "", "", err
	}
	_, _ = fmt.Fprintln(h, requirements) // a hash never fails
	return fmt.Sprintf("%x\n", h.Sum(nil)), p.abs(slashed(State, "patches", path.Base(name))), nil
}

func (p *Project) checkPatches(ctx context.Context, name string) error {
	key, file, err := p.patchCheck(name)
	if err != nil {
		return err
	}
	if known, err := os.ReadFile(file); err == nil && string(known) == key {
		return nil
	}
	m, err := module.Load(p.Root, name)
	if err != nil {
		return err
	}
	if err := patched.Check(ctx, p.Root, p.Go, patched.SpecOf(p.patches[name], name), m, func(string) {}); err != nil {
		return err
	}
	return remember(key, file)
}

// gatheredModFile is the file, in a folder of gathered licenses, with the go.mod that replaces patched modules; go.sum is beside it.
var gatheredModFile = filepath.Join("patched", patched.ModFile)

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// patch makes everything that is compiled in a module take its dependencies as patches change them.
func (b *builder) patch(m *goModule) {
	s, ok := b.patches[m.Name]
	if b.made {
		// Bazel has compiled everything already. What it has linked is checked.
		if file := filepath.Join(b.licensed, gatheredModFile); m.Name == b.Catalog.Module && exists(file) {
			m.modFile = filepath.ToSlash(file)
		}
		return
	}
	if !ok {
		return
	}
	spec := patched.SpecOf(s, m.Name)
	b.add(patched.Action(b.Root, b.Go, b.Generator, spec, m.Module, m.inputs))
	own := []string{path.Join(m.Name, "go.mod"), path.Join(m.Name, "go.sum")}
	m.inputs = append(spec.Files(), slices.DeleteFunc(slices.Clone(m.inputs), func(name string) bool { return slices.Contains(own, name) })...)
	m.modFile = spec.Files()[0]
}

// Code says which code the packages of a Go module of the tree are made from.
type Code struct {
	Module  *module.Module
	ModFile string           // instead of its go.mod, relative to the root, with go.sum beside it; empty without patches
	Inputs  []string         // what decides it, besides the packages' own files
	Actions []*action.Action // that make ModFile, and patched modules
}

// Components returns the code of the components' module.
func (p *Project) Components(ctx context.Context) (*Code, error) {
	if err := p.CheckPatches(ctx); err != nil {
		return nil, err
	}
	b := p.builder(ctx)
	m, err := b.module(p.Catalog.Module)
	if err != nil {
		return nil, err
	}
	return &Code{m.Module, m.modFile, m.inputs, b.graph.Actions}, nil
}

// patchesOf returns the patches of what a module requires, for its licenses.
func (p *Project) patchesOf(m *goModule) []license.Patch {
	var found []license.Patch
	for _, one := range p.patches[m.Name].Patches {
		found = append(found, license.Patch{Name: one.Name, SHA256: one.SHA256})
	}
	return found
}

// patchInputs returns the tree's patches as inputs of a release.
func (p *Project) patchInputs() ([]release.Input, error) {
	var inputs []release.Input
	for _, name := range p.patchedModules() {
		repository, err := patch.RepositoryOf(p.Root, p.Catalog.Module, p.patches[name])
		if err != nil {
			return nil, err
		}
		for _, one := range p.patches[name].Patches {
			in := release.Input{Kind: release.Patch, Name: one.Name, SHA256: one.SHA256}
			for _, file := range one.Paths() {
				if place, _, why := repository.Locate(file); why == "" {
					in.Changes = append(in.Changes, place.Module)
				}
			}
			slices.Sort(in.Changes)
			in.Changes = slices.Compact(in.Changes)
			inputs = append(inputs, in)
		}
	}
	return inputs, nil
}

// useMade makes a module's lists of packages use its patched modules, which must have been made: Bazel asks for lists while slipway waits
// for it with the tree's lock. It returns the go.mod and go.sum that do so, or nothing if there are no patches.
func (p *Project) useMade(m *goModule) (files []string, err error) {
	s, ok := p.patches[m.Name]
	if !ok {
		return nil, nil
	}
	spec := patched.SpecOf(s, m.Name)
	if _, err := patched.Made(p.Root, spec); err != nil {
		return nil, err
	}
	m.modFile = spec.Files()[0]
	return spec.Files(), nil
}

// gatherModFiles copies the files of useMade to a folder of gathered licenses, for patch.
func (p *Project) gatherModFiles(files []string, dir string) error {
	to := filepath.Join(dir, filepath.Dir(gatheredModFile))
	for _, file := range files {
		if err := os.MkdirAll(to, 0o777); err != nil {
			return err
		}
		if err := atomicfile.Copy(p.abs(file), filepath.Join(to, path.Base(file))); err != nil {
			return err
		}
	}
	return nil
}
