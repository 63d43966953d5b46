package bump

import (
	"context"
	"slices"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// selection returns what a module selects: versions by path, and the go line.
func selection(m *module.Module) *wanted {
	s := &wanted{Versions: map[string]string{}, Go: m.Go}
	for _, r := range m.Requires {
		s.Versions[r.Path] = r.Version
	}
	for _, r := range m.Replaces {
		if r.New.Path == r.Old.Path && r.Old.Version == "" {
			s.Versions[r.Old.Path] = r.New.Version
		}
	}
	return s
}

// share raises what another project requires to the versions that the components are compiled from, so that the packages of these
// modules are compiled once for both. The components' own versions never change for it.
//
// A module of which the project requires a newer version stays as it is, and everything that imports it is compiled twice. A replacement by
// the older version would not change that: the go command names a package by the version that is required, not by the one in its place.
//
// If these modules ask for a later Go than the project, the project behaves as with its own: see https://go.dev/doc/godebug.
func (w *wanted) share(components *wanted) {
	shares := false
	w.Godebug = []*modfile.Godebug{}
	for path, version := range components.Versions {
		if has := w.Versions[path]; has != "" && !slices.Contains(w.Own, path) && semver.Compare(version, has) > 0 {
			w.Versions[path], shares = version, true
		}
	}
	if shares && w.Go != "" && goversion.Compare("go"+components.Go, "go"+w.Go) > 0 {
		if own := goversion.Lang("go" + w.Go); own != goversion.Lang("go"+components.Go) {
			w.Godebug = append(w.Godebug, &modfile.Godebug{Key: "default", Value: own})
		}
		w.Go = components.Go // their modules ask for it
	}
}

// onlyTests reports whether a project's programs are for tests alone: these take upstream's versions of everything.
func (p *preparation) onlyTests(pr project) bool {
	return len(pr.images) == 0 && !slices.ContainsFunc(p.catalog.Binaries, func(b catalog.Binary) bool {
		return b.Module == pr.folder && (slices.ContainsFunc(b.Sets, func(set catalog.Set) bool { return set != catalog.Test }) ||
			slices.ContainsFunc(p.catalog.Images, func(im catalog.Image) bool { return !im.In(catalog.Test) && slices.Contains(im.With, b.Name) }))
	})
}

// wantedBy returns what a project in a version must require, with modules shared with components unless it is to be apart.
func (p *preparation) wantedBy(pr project, modules []fetched, components *wanted) wanted {
	want := fromProject(modules)
	if !pr.apart && !p.onlyTests(pr) {
		want.share(components)
	}
	return want
}

// apart reports whether a project in the tree has Kubernetes' modules older than the components', so that it does not share them.
func (p *preparation) apart(pr project) bool {
	if p.onlyTests(pr) {
		return false
	}
	staging := module.Staging(p.catalog.Kubernetes)
	for path, version := range selection(pr.goMod).Versions {
		if p.was.Versions[path] == staging && semver.Compare(version, staging) < 0 {
			return true
		}
	}
	return false
}

// followModules makes a project that stays in its version share modules with the components of another version of Kubernetes, if it
// shares them now.
func (p *preparation) followModules(ctx context.Context, pr project) error {
	if _, moved := p.required[pr.folder]; moved || len(pr.modules) == 0 || p.onlyTests(pr) || slices.Contains(p.leftOut, pr.folder) {
		return nil
	}
	if p.patched(pr.folder) {
		p.note("%s has patches, and keeps its versions of modules that Kubernetes has, too: it compiles them for itself until they are "+
			"moved by hand", pr.folder)
		return nil
	}
	if p.apart(pr) {
		return nil
	}
	modules, err := p.fetchProject(ctx, pr, pr.version)
	if err != nil {
		return err
	}
	want, err := p.overridden(pr.folder, p.wantedBy(pr, modules, p.now))
	if err != nil {
		return err
	}
	for path, version := range selection(pr.goMod).Versions {
		// What the components do not move is as the tree has it: the go command may have selected more than upstream asks for.
		if w := want.Versions[path]; w != "" && w != version && p.was.Versions[path] != p.now.Versions[path] {
			return p.require(pr.folder, p.wantedBy(pr, modules, p.now))
		}
	}
	return nil
}
