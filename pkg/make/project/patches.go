package project

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

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// proxies returns the folders where patched modules are written. They may not exist yet.
func (p *Project) proxies() []string {
	var folders []string
	for _, name := range p.patchedModules() {
		folders = append(folders, p.Abs(path.Join(patched.Dir(name), patched.Proxy)))
	}
	return folders
}

// placePatched puts the components' patched modules into the module cache, if they are made.
func (p *Project) placePatched(ctx context.Context, g *toolchain.Go) error {
	name := p.Catalog.Module
	s, ok := p.Patches[name]
	if !ok {
		return nil
	}
	list, err := patched.Made(p.Root, patched.SpecOf(s, name))
	if errors.Is(err, patched.ErrStale) {
		return nil // a Bazel command that compiles nothing does not need them
	}
	if err != nil {
		return err
	}
	return list.Place(ctx, g)
}

// patchedModules returns the folders of the Go modules whose dependencies are patched, sorted.
func (p *Project) patchedModules() []string { return slices.Sorted(maps.Keys(p.Patches)) }

// CheckPatches returns an error that names each patch of the tree that does not apply, and why. It remembers what it has checked in
// _output, since patches and modules seldom change.
func (p *Project) CheckPatches(ctx context.Context) error {
	var errs []error
	for _, name := range p.patchedModules() {
		errs = append(errs, p.checkPatches(ctx, name))
	}
	return errors.Join(errs...)
}

// RecordPatches records, after a graph has run, that the patches that it needed apply. The next CheckPatches then skips them.
func (p *Project) RecordPatches(g *action.Graph) error {
	var errs []error
	for _, name := range p.patchedModules() {
		made := patched.SpecOf(p.Patches[name], name).Files()[0]
		if !slices.ContainsFunc(g.Actions, func(a *action.Action) bool { return slices.Contains(a.Outputs, made) }) {
			continue
		}
		key, file, err := p.patchCheck(name)
		if err == nil {
			err = record(key, file)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func record(key, file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, []byte(key), 0o666)
}

// patchCheck returns a digest of all that decides whether a module's patches apply, and the file where it is recorded if they do.
func (p *Project) patchCheck(name string) (key, file string, err error) {
	spec := patched.SpecOf(p.Patches[name], name)
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{patched.Code.String(), spec}); err != nil {
		return "", "", err
	}
	requirements, err := module.Digest(p.Abs(name))
	if err != nil {
		return "", "", err
	}
	_, _ = fmt.Fprintln(h, requirements) // a hash never fails
	return fmt.Sprintf("%x\n", h.Sum(nil)), p.Abs(path.Join(State, "patches", path.Base(name))), nil
}

func (p *Project) checkPatches(ctx context.Context, name string) error {
	key, file, err := p.patchCheck(name)
	if err != nil {
		return err
	}
	if last, err := os.ReadFile(file); err == nil && string(last) == key {
		return nil
	}
	m, err := module.Load(p.Root, name)
	if err != nil {
		return err
	}
	if err := patched.Check(ctx, p.Root, p.Go, patched.SpecOf(p.Patches[name], name), m, func(string) {}); err != nil {
		return err
	}
	return record(key, file)
}

// PatchInputs returns the tree's patches as inputs of a release.
func (p *Project) PatchInputs() ([]release.Input, error) {
	var inputs []release.Input
	for _, name := range p.patchedModules() {
		repository, err := patch.RepositoryOf(p.Root, p.Catalog.Module, p.Patches[name])
		if err != nil {
			return nil, err
		}
		for _, one := range p.Patches[name].Patches {
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
