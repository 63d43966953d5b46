package project

import (
	"bytes"
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
	"strings"

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
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

// RecordPatches records, after a graph has run, that the patches that it needed apply. The next CheckPatches then skips them. It does
// the rest of what CheckPatches does, too: its error names patches without effect.
func (p *Project) RecordPatches(ctx context.Context, g *action.Graph) error {
	var errs []error
	for _, name := range p.patchedModules() {
		made := patched.SpecOf(p.Patches[name], name).Files()[0]
		if !slices.ContainsFunc(g.Actions, func(a *action.Action) bool { return slices.Contains(a.Outputs, made) }) {
			continue
		}
		key, file, err := p.patchCheck(name)
		if last, failed := os.ReadFile(file); err == nil && (failed != nil || string(last) != key) {
			if err = p.checkCompiled(ctx, name); err == nil {
				err = record(key, file)
			}
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
	if err := p.checkCompiled(ctx, name); err != nil {
		return err
	}
	return record(key, file)
}

// checkCompiled returns a *patch.NoEffectError for each patch that changes only packages of linked modules that no program has.
func (p *Project) checkCompiled(ctx context.Context, name string) error {
	repository, err := patch.RepositoryOf(p.Root, p.Catalog.Module, p.Patches[name])
	if err != nil {
		return err
	}
	unknown := map[*patch.Patch][]string{} // packages by the patches that change nothing else
	for _, one := range p.Patches[name].Patches {
		if packages, all := repository.LinkedPackages(one); all {
			unknown[one] = packages
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	g, err := p.Go(ctx, func(string) {})
	if err != nil {
		return err
	}
	for _, on := range p.systems() {
		for _, tests := range []bool{false, true} {
			compiled, err := p.compiled(ctx, g, name, on, tests)
			if err != nil {
				return err
			}
			maps.DeleteFunc(unknown, func(_ *patch.Patch, packages []string) bool {
				return slices.ContainsFunc(packages, func(pkg string) bool { return slices.Contains(compiled, pkg) })
			})
			if len(unknown) == 0 {
				return nil
			}
		}
	}
	var errs []error
	for _, one := range p.Patches[name].Patches {
		failed := &patch.NoEffectError{Patch: one.Name}
		for _, pkg := range unknown[one] {
			failed.Skipped = append(failed.Skipped, patch.Skipped{File: pkg, Why: "no binary of the tree has this package"})
		}
		if len(failed.Skipped) > 0 {
			errs = append(errs, failed)
		}
	}
	return errors.Join(errs...)
}

// systems returns a platform for each operating system that something is compiled for, Linux first.
func (p *Project) systems() []catalog.Platform {
	var found []catalog.Platform
	for _, set := range slices.Sorted(maps.Keys(p.Catalog.Sets)) {
		for _, on := range p.Catalog.Sets[set] {
			if !slices.ContainsFunc(found, func(other catalog.Platform) bool { return other.OS == on.OS }) {
				found = append(found, on)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b catalog.Platform) int {
		return strings.Compare(strings.Replace(a.OS, "linux", "", 1), strings.Replace(b.OS, "linux", "", 1))
	})
	return found
}

// compiled returns the import paths of the packages in the binaries of a Go module, or in its compiled tests.
func (p *Project) compiled(ctx context.Context, g *toolchain.Go, name string, on catalog.Platform, tests bool) ([]string, error) {
	args := []string{"list", "-e", "-deps", fmt.Sprintf("-test=%t", tests), "-tags=" + strings.Join(p.Catalog.Tags, ",")}
	n := len(args)
	for _, b := range p.Catalog.Binaries {
		if b.Module == name && b.IsTest() == tests {
			args = append(args, b.ImportPath())
		}
	}
	if len(args) == n {
		return nil, nil
	}
	c := g.Command(ctx, p.Abs(name), on.OS, on.Arch, args...)
	c.Env = append(c.Env, "CGO_ENABLED=0")
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: go list: %w\n%s", name, err, problem.Bytes())
	}
	return strings.Fields(string(out)), nil
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
			if in.Fixes, err = one.Fixes(); err != nil {
				return nil, err
			}
			for _, place := range repository.Changed(one) {
				in.Changes = append(in.Changes, place.Module)
			}
			slices.Sort(in.Changes)
			in.Changes = slices.Compact(in.Changes)
			inputs = append(inputs, in)
		}
	}
	return inputs, nil
}
