package action

import (
	"maps"
	"slices"
	"strings"
)

// Names has the names of folders in caches: see [Graph.Folders].
type names []folderName

type folderName struct{ here, common string }

func namesOf(folders map[string]string) names {
	var all names
	for _, here := range slices.Sorted(maps.Keys(folders)) {
		all = append(all, folderName{here, folders[here]})
	}
	return all
}

// path returns the name of a file or folder in caches.
func (n names) path(here string) string {
	for _, f := range n {
		if rest, ok := strings.CutPrefix(here, f.here); ok {
			return f.common + rest
		}
	}
	return here
}

// recipe returns a recipe, which may name files anywhere in its texts, for keys in caches.
func (n names) recipe(recipe []string) []string {
	var pairs []string
	for _, f := range n {
		pairs = append(pairs, f.here, f.common)
	}
	r := strings.NewReplacer(pairs...)
	common := make([]string, len(recipe))
	for i, text := range recipe {
		common[i] = r.Replace(text)
	}
	return common
}

// toCommon returns a result with the names in caches, and the name here of each of them.
func (n names) toCommon(r *Result) (common *Result, here map[string]string) {
	here = make(map[string]string, len(r.Entries))
	common = r.renamed(func(p string) string {
		to := n.path(p)
		here[to] = p
		return to
	})
	return common, here
}

// fromCommon returns a result from a cache with the names here. Names of no output stay as they are.
func (n names) fromCommon(r *Result, outputs []string) *Result {
	return r.renamed(func(p string) string {
		for _, out := range outputs {
			common := n.path(out)
			if p == common {
				return out
			}
			if rest, ok := strings.CutPrefix(p, common); ok && strings.HasSuffix(common, "/") {
				return out + rest
			}
		}
		return p
	})
}

func (r *Result) renamed(name func(string) string) *Result {
	other := *r
	other.Entries = slices.Clone(r.Entries)
	for i := range other.Entries {
		other.Entries[i].Path = name(other.Entries[i].Path)
	}
	return &other
}
