package bump

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/catalog"
	tree "slipway.build/pkg/tree/module"
)

// kubernetes is the module whose version is a release's.
const kubernetes = "k8s.io/kubernetes"

// A requirement names a module by path, and the version of it that a new go.mod requires.
type requirement = module.Version

// wanted says what a go.mod must require.
type wanted struct {
	Go       string             // the go line; empty: as it is
	Godebug  []*modfile.Godebug // nil: as it is
	Own      []string           // paths of the modules that must have their versions exactly
	Versions map[string]string  // of requirements, by path; others stay as they are
	Indirect []string           // paths of modules that are required even without a direct requirement
	Replace  []requirement      // modules that are replaced by a version of themselves; nil: as they are
	Forks    []catalog.Override // by which versions of modules are replaced
}

// rewrite makes a go.mod require other versions, ready for `go mod tidy`.
//
// Versions in place could only be raised: minimal version selection keeps every indirect requirement that a newer version had,
// so that after a step down 58 modules of Kubernetes 1.35.4 were too new. So the indirect requirements go, and tidy writes them
// again, from those of the wanted modules, which list all that they selected.
//
// The file keeps its module line, comments, tools, and the direct requirements and replacements that are its own.
func (w wanted) rewrite(f *modfile.File) error {
	if w.Go != "" {
		if err := f.AddGoStmt(w.Go); err != nil {
			return fmt.Errorf("go %s: %w", w.Go, err)
		}
	}
	if w.Godebug != nil {
		for _, old := range slices.Clone(f.Godebug) {
			if !slices.ContainsFunc(w.Godebug, func(g *modfile.Godebug) bool { return g.Key == old.Key }) {
				if err := f.DropGodebug(old.Key); err != nil {
					return err
				}
			}
		}
		for _, g := range w.Godebug {
			if err := f.AddGodebug(g.Key, g.Value); err != nil {
				return err
			}
		}
	}
	var required []*modfile.Require
	direct := map[string]bool{}
	for _, r := range f.Require {
		if !r.Indirect {
			direct[r.Mod.Path] = true
			version := cmp.Or(w.Versions[r.Mod.Path], r.Mod.Version)
			required = append(required, &modfile.Require{Mod: module.Version{Path: r.Mod.Path, Version: version}})
		}
	}
	for _, path := range w.Indirect {
		if !direct[path] {
			required = append(required, &modfile.Require{Mod: module.Version{Path: path, Version: w.Versions[path]}, Indirect: true})
		}
	}
	f.SetRequireSeparateIndirect(required)

	// A replacement by the module's own version is upstream's, and is written again. One by something else is the distribution's.
	for _, r := range slices.Clone(f.Replace) {
		if w.Replace != nil && r.New.Path == r.Old.Path && r.Old.Version == "" {
			if err := f.DropReplace(r.Old.Path, ""); err != nil {
				return err
			}
		}
	}
	for _, m := range w.Replace {
		if slices.ContainsFunc(f.Replace, func(r *modfile.Replace) bool { return r.Old.Path == m.Path }) {
			continue
		}
		if err := f.AddReplace(m.Path, "", m.Path, m.Version); err != nil {
			return err
		}
	}
	for _, o := range w.Forks {
		if err := replaceBy(f, o); err != nil {
			return err
		}
	}
	f.Cleanup()
	f.SortBlocks()
	return nil
}

// fromKubernetes returns what the components' go.mod must require, by k8s.io/kubernetes' own go.mod of a version. That is what
// upstream's release is compiled from.
//
// In its repository, upstream replaces the staging modules by folders. Outside, a staging module has the version of the release,
// with v0 for v1. They are required as well as replaced: tidy would otherwise write the v0.0.0 that upstream's go.mod has.
func fromKubernetes(version string, upstream *modfile.File) (wanted, error) {
	w := wanted{Own: []string{kubernetes}, Versions: map[string]string{kubernetes: version}, Replace: []requirement{},
		Godebug: append([]*modfile.Godebug{}, upstream.Godebug...)}
	if upstream.Go == nil {
		return w, fmt.Errorf("%s %s: its go.mod has no go line", kubernetes, version)
	}
	w.Go = upstream.Go.Version
	for _, r := range upstream.Require {
		w.Versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range upstream.Replace {
		switch {
		case strings.HasPrefix(r.New.Path, "./staging/src/"):
			m := requirement{Path: r.Old.Path, Version: tree.Staging(version)}
			w.Replace = append(w.Replace, m)
			if w.Versions[m.Path] != "" {
				w.Indirect = append(w.Indirect, m.Path)
			}
			w.Versions[m.Path] = m.Version
		case r.New.Path == r.Old.Path && r.New.Version != "" && r.Old.Version == "":
			w.Replace = append(w.Replace, r.New)
		default:
			return w, fmt.Errorf("%s %s replaces %s by %s, which slipway does not know how to do outside of upstream's repository",
				kubernetes, version, r.Old, r.New)
		}
	}
	if len(w.Replace) == 0 {
		return w, fmt.Errorf("%s %s: its go.mod replaces no staging module", kubernetes, version)
	}
	return w, nil
}

// fromProject returns what a go.mod must require so that a project is compiled from what its own go.mod files select. Of the
// versions that several of them require, the newest counts, as for the go command.
//
// Replacements by folders are for the project's own repository. They do not count outside, where the requirement does.
func fromProject(modules []fetched) wanted {
	w := wanted{Versions: map[string]string{}, Replace: []requirement{}}
	for _, m := range modules {
		w.Own = append(w.Own, m.Path)
		w.raise(m.requirement)
		if m.mod.Go != nil && (w.Go == "" || goversion.Compare("go"+m.mod.Go.Version, "go"+w.Go) > 0) {
			w.Go = m.mod.Go.Version
		}
		for _, r := range m.mod.Require {
			w.raise(r.Mod)
		}
		for _, r := range m.mod.Replace {
			same := func(m requirement) bool { return m.Path == r.New.Path }
			if r.New.Path == r.Old.Path && r.New.Version != "" && r.Old.Version == "" && !slices.ContainsFunc(w.Replace, same) {
				w.Replace = append(w.Replace, r.New)
			}
		}
	}
	w.Indirect = slices.Sorted(maps.Keys(w.Versions))
	return w
}

// raise makes a go.mod require a version of a module, or a newer one.
func (w *wanted) raise(m requirement) {
	if semver.Compare(m.Version, w.Versions[m.Path]) > 0 {
		w.Versions[m.Path] = m.Version
	}
}

// dropped returns what was raised in the tree, by hand, over what upstream asked for before, and is not any more: versions of modules,
// and replacements by a version. If before has no versions, what upstream asked for is unknown.
func dropped(old, new *tree.Module, before, want wanted) []Move {
	var moves []Move
	for _, r := range old.Requires {
		asked := before.Versions[r.Path]
		now, still := new.Require(r.Path)
		if !still || r.Replace != (tree.Version{}) || semver.Compare(r.Version, asked) <= 0 || semver.Compare(now.Version, r.Version) >= 0 {
			continue
		}
		why := old.Name + "/go.mod had raised it"
		if asked != "" {
			why += " from " + asked
		}
		moves = append(moves, Move{r.Path + " in " + old.Name, r.Version, now.Version, why + ", and the bump takes upstream's"})
	}
	upstreams, anyVersion := before.Replace, before.Versions == nil
	if anyVersion {
		upstreams = want.Replace
	}
	for _, r := range old.Replaces {
		at := slices.IndexFunc(new.Replaces, func(n tree.Replacement) bool { return n.Old == r.Old })
		if r.New.Version == "" || at >= 0 && new.Replaces[at].New == r.New || slices.ContainsFunc(upstreams, func(m requirement) bool {
			return m.Path == r.New.Path && (m.Version == r.New.Version || anyVersion)
		}) {
			continue
		}
		to := ""
		if at >= 0 {
			to = new.Replaces[at].New.Version
		}
		moves = append(moves, Move{"replace of " + r.Old.Path + " in " + old.Name, r.New.Version, to,
			old.Name + "/go.mod had it, and upstream has not"})
	}
	return moves
}
