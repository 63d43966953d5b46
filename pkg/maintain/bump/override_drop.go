package bump

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// dropOverride removes an override, and lowers what it has raised in go.mod files to the versions that upstream selects.
func (p *preparation) dropOverride(ctx context.Context, at int) error {
	o := p.catalog.Overrides[at]
	folders := p.overridable(o)
	p.catalog.Overrides = slices.Delete(slices.Clone(p.catalog.Overrides), at, at+1)
	p.raising = o.Module
	if err := p.draft.DropOverride(o.Module); err != nil {
		return err
	}
	if err := p.dropForks(o); err != nil {
		return err
	}
	raised, err := p.requiredBy(ctx, o)
	if err != nil {
		return err
	}
	wants := map[string]wanted{}
	if slices.Contains(folders, p.catalog.Module) {
		main, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: p.catalog.Kubernetes})
		if err != nil {
			return err
		}
		if wants[p.catalog.Module], err = fromKubernetes(p.catalog.Kubernetes, main[0].mod); err != nil {
			return err
		}
		p.follow(wants[p.catalog.Module])
		wants[examples] = *p.now
	}
	for _, pr := range p.projects {
		if !slices.Contains(folders, pr.folder) || len(pr.modules) == 0 {
			continue
		}
		modules, err := p.fetchProject(ctx, pr, pr.version)
		if err != nil {
			return err
		}
		pr.apart = p.apart(pr)
		wants[pr.folder] = p.wantedBy(pr, modules, p.now)
	}
	for _, folder := range folders {
		want, known := wants[folder]
		if !known {
			p.note("%s/go.mod keeps its versions: no upstream says which it should have", folder)
			continue
		}
		if want, err = p.overridden(folder, want); err != nil {
			return err
		}
		m, err := module.Load(p.Root, folder)
		if err != nil {
			return err
		}
		lower, gone := map[string]string{}, map[string]string{}
		if o.With != "" {
			gone[o.Code().Path] = o.Code().Version
		}
		for _, r := range m.Requires {
			has, to := r.Code(), want.Versions[r.Path]
			if o.With != "" && r.Path == o.Module {
				has.Path, has.Version = r.Path, r.Version
			}
			if to != "" && has.Path == r.Path && has.Version == raised[r.Path] && semver.Compare(to, has.Version) < 0 {
				lower[r.Path], gone[r.Path] = to, has.Version
			}
		}
		if err := p.set(ctx, folder, lower); err != nil {
			return err
		}
		if p.patched(folder) {
			if err := p.dropSums(folder, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropSums removes the sums of versions that a go.mod does not require any more, by path, as tidying would.
func (p *preparation) dropSums(folder string, gone map[string]string) error {
	name := path.Join(folder, "go.sum")
	data, err := os.ReadFile(p.file(name))
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		f := strings.Fields(string(line))
		if len(f) != 3 || strings.TrimSuffix(f[1], "/go.mod") != gone[f[0]] {
			kept = append(kept, line...)
		}
	}
	return p.write(name, kept)
}

// requiredBy returns the versions of the modules that an override raises: of its own, and of those that it requires, directly or through
// others.
func (p *preparation) requiredBy(ctx context.Context, o catalog.Override) (map[string]string, error) {
	versions := map[string]string{o.Module: o.Version}
	for next := []requirement{requirement(o.Code())}; len(next) > 0; {
		for _, m := range next {
			versions[m.Path] = m.Version
		}
		found, err := p.proxy.goMods(ctx, next)
		if err != nil {
			return nil, err
		}
		newer := map[string]string{}
		for _, f := range found {
			for _, r := range f.Require {
				if semver.Compare(r.Mod.Version, cmp.Or(newer[r.Mod.Path], versions[r.Mod.Path])) > 0 {
					newer[r.Mod.Path] = r.Mod.Version
				}
			}
		}
		next = nil
		for _, name := range slices.Sorted(maps.Keys(newer)) {
			next = append(next, requirement{Path: name, Version: newer[name]})
		}
	}
	return versions, nil
}
