package patch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// A published module has another go.mod than the repository, and the tree's go.mod selects all versions. So the requirements of a patch
// are met there, and the patch does not change a file for them.

// requires returns the versions of linked modules that a patch's go.mod files ask for, by path. The conflict, if it is not nil, says what
// the tree's go.mod lacks.
func (r *Repository) requires(p *Patch) (wanted map[string]string, lacking *Conflict) {
	wanted = map[string]string{}
	if r.links == "" {
		return wanted, nil
	}
	for _, c := range p.Commits {
		for _, f := range c.Files {
			if _, _, why := r.locate(f.Path()); why != "" || path.Base(f.Path()) != "go.mod" {
				continue
			}
			added, removed, other := requirements(f)
			if other != "" {
				return nil, &Conflict{Patch: p.Name, File: p.own(f.Path()), Why: fmt.Sprintf("patches can only raise requirements in a go.mod, and "+
					"this one changes %q", other)}
			}
			for module, version := range added {
				_, own := r.Place(module)
				_, linked := r.link(module)
				switch {
				case linked && semver.Compare(version, wanted[module]) > 0:
					wanted[module] = version
				case !own && !linked && removed[module] == "":
					return nil, &Conflict{Patch: p.Name, File: p.own(f.Path()), Why: fmt.Sprintf("it requires %s %s, and %s/go.mod does not require "+
						"this module: require it there", module, version, r.links)}
				}
			}
		}
	}
	var words []string
	lacking = &Conflict{Patch: p.Name, File: "go.mod"}
	for _, module := range slices.Sorted(maps.Keys(wanted)) {
		if at, _ := r.link(module); semver.Compare(at.Version, wanted[module]) < 0 {
			lacking.Raises = append(lacking.Raises, gomod.Version{Path: module, Version: wanted[module]})
			words = append(words, fmt.Sprintf("it raises %s to %s, and %s/go.mod has %s", module, wanted[module], r.links, at.Version))
		}
	}
	if len(words) == 0 {
		return wanted, nil
	}
	lacking.Why = strings.Join(words, "; ")
	return nil, lacking
}

// Raise has the repository link newer versions of modules.
func (r *Repository) Raise(to []gomod.Version) {
	for i := range r.linked {
		for _, m := range to {
			if p := &r.linked[i]; p.Module == m.Path {
				p.Version = m.Version
			}
		}
	}
}

// requirements reads the changes of a go.mod: requirements by path, and a line with another change. Replacements by folders of the
// repository count for nothing.
func requirements(f File) (added, removed map[string]string, other string) {
	added, removed = map[string]string{}, map[string]string{}
	if f.Old != f.New {
		return nil, nil, "the file's name"
	}
	for _, fragment := range f.diff.TextFragments {
		for _, l := range fragment.Lines {
			text, _, _ := strings.Cut(l.Line, "//")
			text = strings.TrimSpace(text)
			words := strings.Fields(strings.TrimPrefix(text, "require "))
			to := map[gitdiff.LineOp]map[string]string{gitdiff.OpAdd: added, gitdiff.OpDelete: removed}[l.Op]
			switch {
			case to == nil || len(words) == 0 || text == "require (" || text == ")" || strings.Contains(text, "=> ."):
			case len(words) == 2 && semver.IsValid(words[1]):
				to[words[0]] = words[1]
			default:
				other = text
			}
		}
	}
	return added, removed, other
}
