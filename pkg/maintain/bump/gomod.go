package bump

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	tree "slipway.build/pkg/tree/module"
)

// kubernetes is the module whose version is a release's.
const kubernetes = "k8s.io/kubernetes"

// A requirement names a module by path, and the version of it that a new go.mod requires.
type requirement = module.Version

// rewrite returns a go.mod that requires other versions than the current one, ready for `go mod tidy`.
//
// Versions in place could only be raised: minimal version selection keeps every indirect requirement that a newer version had,
// so that after a step down 58 modules of Kubernetes 1.35.4 were too new. So the indirect requirements go, and tidy writes them
// anew from those of the wanted modules, which list all that they selected.
//
// The file keeps its module line, comments, tools, and the direct requirements and replacements that are its own.
func rewrite(name string, current []byte, want wanted) ([]byte, error) {
	f, err := modfile.Parse(name, current, nil)
	if err != nil {
		return nil, err
	}
	if want.Go != "" {
		if err := f.AddGoStmt(want.Go); err != nil {
			return nil, fmt.Errorf("%s: go %s: %w", name, want.Go, err)
		}
	}
	if want.Godebug != nil {
		for _, g := range slices.Clone(f.Godebug) {
			wanted := func(w *modfile.Godebug) bool { return w.Key == g.Key }
			if !slices.ContainsFunc(want.Godebug, wanted) {
				if err := f.DropGodebug(g.Key); err != nil {
					return nil, err
				}
			}
		}
		for _, g := range want.Godebug {
			if err := f.AddGodebug(g.Key, g.Value); err != nil {
				return nil, err
			}
		}
	}
	var required []*modfile.Require
	for _, r := range f.Require {
		if !r.Indirect {
			v := r.Mod.Version
			if w := want.Versions[r.Mod.Path]; w != "" {
				v = w
			}
			required = append(required, &modfile.Require{Mod: module.Version{Path: r.Mod.Path, Version: v}})
		}
	}
	has := func(path string) bool {
		return slices.ContainsFunc(required, func(r *modfile.Require) bool { return r.Mod.Path == path })
	}
	for _, m := range want.Add {
		if !has(m.Path) {
			required = append(required, &modfile.Require{Mod: m, Indirect: true})
		}
	}
	f.SetRequireSeparateIndirect(required)

	// A replacement by the module's own version is upstream's, and is written anew. One by something else is the distribution's.
	for _, r := range slices.Clone(f.Replace) {
		if want.Replace != nil && r.New.Path == r.Old.Path && r.Old.Version == "" {
			if err := f.DropReplace(r.Old.Path, ""); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range want.Replace {
		if slices.ContainsFunc(f.Replace, func(r *modfile.Replace) bool { return r.Old.Path == m.Path }) {
			continue
		}
		if err := f.AddReplace(m.Path, "", m.Path, m.Version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	f.SortBlocks()
	return f.Format()
}

// wanted says what a go.mod must require.
type wanted struct {
	Go       string             // the go line; empty: as it is
	Godebug  []*modfile.Godebug // nil: as it is
	Own      []string           // paths of the modules that have to have their versions exactly
	Versions map[string]string  // of direct requirements, by path; others stay as they are
	Add      []requirement      // indirect requirements, where there is no direct one
	Replace  []requirement      // modules that are replaced by a version of themselves; nil: as they are
}

// fromKubernetes returns what the components' go.mod must require, by k8s.io/kubernetes' own go.mod of a version. That is what
// upstream's release is compiled from.
//
// In its repository, upstream replaces the staging modules by folders. Outside, a staging module has the version of the release,
// with v0 for v1. They are required as well as replaced: tidy would otherwise write the v0.0.0 that upstream's go.mod has.
func fromKubernetes(version string, upstream *modfile.File) (wanted, error) {
	w := wanted{Own: []string{kubernetes}, Versions: map[string]string{kubernetes: version}, Replace: []requirement{},
		Godebug: []*modfile.Godebug{}}
	if upstream.Go == nil {
		return w, fmt.Errorf("%s %s: its go.mod has no go line", kubernetes, version)
	}
	w.Go = upstream.Go.Version
	w.Godebug = append(w.Godebug, upstream.Godebug...)
	for _, r := range upstream.Require {
		w.Versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range upstream.Replace {
		switch {
		case strings.HasPrefix(r.New.Path, "./staging/src/"):
			m := requirement{Path: r.Old.Path, Version: StagingVersion(version)}
			w.Versions[m.Path] = m.Version
			w.Replace = append(w.Replace, m)
			if required(upstream, m.Path) {
				w.Add = append(w.Add, m)
			}
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

// dropped returns what was raised in the tree, by hand, over what upstream asked for before, and is not any more: versions of modules,
// and replacements by a version.
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
	for _, r := range old.Replaces {
		ofUpstream := func(m requirement) bool {
			return m.Path == r.New.Path && (m.Version == r.New.Version || before.Versions == nil)
		}
		if r.New.Version == "" || slices.ContainsFunc(before.Replace, ofUpstream) || before.Versions == nil &&
			slices.ContainsFunc(want.Replace, ofUpstream) {
			continue
		}
		to := ""
		if i := slices.IndexFunc(new.Replaces, func(n tree.Replacement) bool { return n.Old == r.Old }); i >= 0 {
			if to = new.Replaces[i].New.Version; new.Replaces[i].New == r.New {
				continue
			}
		}
		moves = append(moves, Move{"replace of " + r.Old.Path + " in " + old.Name, r.New.Version, to,
			old.Name + "/go.mod had it, and upstream has not"})
	}
	return moves
}

func required(f *modfile.File, path string) bool {
	return slices.ContainsFunc(f.Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
}

// StagingVersion returns the version of the staging modules that were released with a version of Kubernetes: v0.37.1 for v1.37.1.
func StagingVersion(kubernetes string) string { return "v0" + strings.TrimPrefix(kubernetes, "v1") }
