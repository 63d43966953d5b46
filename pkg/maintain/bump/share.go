package bump

import (
	"context"
	"maps"
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
// A module of which the project requires a newer version stays as it is, and so does everything that imports it. Where too much would
// be compiled twice for that, the tree's go.mod replaces the module by the components' version, and share keeps such replacements.
func (w *wanted) share(was, now selection, current *modfile.File) {
	shares := false
	for path, version := range now.Versions {
		if has := w.Versions[path]; has != "" && !slices.Contains(w.Own, path) && semver.Compare(version, has) > 0 {
			w.Versions[path], shares = version, true
		}
	}
	for i, m := range w.Add {
		w.Add[i].Version = w.Versions[m.Path]
	}
	for _, r := range current.Replace {
		path, version := r.Old.Path, now.Versions[r.Old.Path]
		same := func(m requirement) bool { return m.Path == path }
		if r.New.Path == path && r.Old.Version == "" && r.New.Version == was.Versions[path] && version != "" && !slices.ContainsFunc(w.Replace, same) {
			w.Replace, shares = append(w.Replace, requirement{Path: path, Version: version}), true
		}
	}
	if shares && w.Go != "" && goversion.Compare("go"+now.Go, "go"+w.Go) > 0 {
		w.Go = now.Go // their modules ask for it
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
func (p *preparation) shareWith(pr project, want *wanted, was, now selection) error {
	if p.onlyTests(pr) {
		return nil
	}
	name := pr.folder + "/go.mod"
	data, err := p.read(name)
	if err != nil {
		return err
	}
	current, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	want.share(was, now, current)
	return nil
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
		p.note("%s has patches, and keeps its versions of modules that Kubernetes has, too: it compiles them for itself until they are moved by hand",
			pr.folder)
		return nil
	}
	modules, err := p.getProject(ctx, pr, pr.version)
	if err != nil {
		return err
	}
	want := fromProject(modules)
	was, now, err := p.components()
	if err != nil {
		return err
	}
	if err := p.shareWith(pr, &want, was, now); err != nil {
		return err
	}
	has, err := p.selection(pr.folder)
	if err != nil {
		return err
	}
	will := maps.Clone(want.Versions)
	for _, m := range want.Replace {
		will[m.Path] = m.Version
	}
	for path, version := range has.Versions {
		if w := will[path]; w != "" && w != version {
			return p.require(pr.folder, want)
		}
	}
	return nil
}
