package bump

import (
	"context"
	"slices"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
)

// A selection is what a module selects: versions by path, and the go line.
type selection struct {
	Versions map[string]string
	Go       string
}

// selection reads what the module in a folder selects.
func (p *preparation) selection(folder string) (selection, error) {
	s := selection{Versions: map[string]string{}}
	name := folder + "/go.mod"
	data, err := p.read(name)
	if err != nil {
		return s, err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return s, err
	}
	if f.Go != nil {
		s.Go = f.Go.Version
	}
	for _, r := range f.Require {
		s.Versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range f.Replace {
		if r.New.Path == r.Old.Path && r.Old.Version == "" {
			s.Versions[r.Old.Path] = r.New.Version
		}
	}
	return s, nil
}

// share raises what another project requires to the versions that the components are compiled from, so that the packages of these
// modules are compiled once for both. The components' own versions never change for it.
//
// A module of which the project requires a newer version stays as it is, and everything that imports it is compiled twice. A replacement by
// the older version would not change that: the go command names a package by the version that is required, not by the one in its place.
//
// If these modules ask for a later Go than the project, the project behaves as with its own: see https://go.dev/doc/godebug.
func (w *wanted) share(components selection) {
	shares := false
	w.Godebug = []*modfile.Godebug{}
	for path, version := range components.Versions {
		if has := w.Versions[path]; has != "" && !slices.Contains(w.Own, path) && semver.Compare(version, has) > 0 {
			w.Versions[path], shares = version, true
		}
	}
	for i, m := range w.Add {
		w.Add[i].Version = w.Versions[m.Path]
	}
	if shares && w.Go != "" && goversion.Compare("go"+components.Go, "go"+w.Go) > 0 {
		if own, theirs := goversion.Lang("go"+w.Go), goversion.Lang("go"+components.Go); own != theirs {
			w.Godebug = append(w.Godebug, &modfile.Godebug{Key: "default", Value: own})
		}
		w.Go = components.Go // their modules ask for it
	}
}

// components returns what the components' module selected, and selects after the bump.
func (p *preparation) components() (was, now selection, err error) {
	if p.now.Versions != nil {
		return p.was, p.now, nil
	}
	was, err = p.selection(p.catalog.Module) // Kubernetes stays
	return was, was, err
}

// shareWith makes a project that is wanted share modules with the components.
func (p *preparation) shareWith(pr project, want *wanted, components selection) {
	if !p.onlyTests(pr) {
		want.share(components)
	}
}

// onlyTests reports whether a project's programs are for tests alone: these want upstream's versions of everything.
func (p *preparation) onlyTests(pr project) bool {
	return len(pr.images) == 0 && !slices.ContainsFunc(p.catalog.Binaries, func(b catalog.Binary) bool {
		return b.Module == pr.folder && slices.ContainsFunc(b.Sets, func(set catalog.Set) bool { return set != catalog.Test })
	})
}

// followModules makes a project that stays in its version share modules with the components of another version of Kubernetes.
func (p *preparation) followModules(ctx context.Context, pr project) error {
	if _, moved := p.stale[pr.folder]; moved || len(pr.modules) == 0 || p.onlyTests(pr) || slices.Contains(p.leftOut, pr.folder) {
		return nil
	}
	if patched, err := p.patched(pr.folder); err != nil {
		return err
	} else if patched {
		p.note("%s has patches, and keeps its versions of modules that Kubernetes has, too: it compiles them for itself until they are "+
			"moved by hand",
			pr.folder)
		return nil
	}
	modules, err := p.getProject(ctx, pr, pr.version)
	if err != nil {
		return err
	}
	want := fromProject(modules)
	_, now, err := p.components()
	if err != nil {
		return err
	}
	p.shareWith(pr, &want, now)
	has, err := p.selection(pr.folder)
	if err != nil {
		return err
	}
	for path, version := range has.Versions {
		if w := want.Versions[path]; w != "" && w != version {
			return p.require(pr.folder, want)
		}
	}
	return nil
}
