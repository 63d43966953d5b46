package action

import (
	"cmp"
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

// commonKey returns the key in caches: the digest of all that decides the outputs, whatever the action is called, with the names of folders
// there.
func (v *verdict) commonKey() string {
	type input struct {
		name string
		content
	}
	all := make([]input, len(v.inputs))
	for i, c := range v.inputs {
		all[i] = input{v.names.path(v.member.inputs[i]), c}
	}
	slices.SortStableFunc(all, func(a, b input) int { return cmp.Compare(a.name, b.name) })
	var inputs []string
	var contents []content
	for _, in := range all {
		inputs, contents = append(inputs, in.name), append(contents, in.content)
	}
	var outputs []string
	for _, out := range v.outputs {
		outputs = append(outputs, v.names.path(out))
	}
	slices.Sort(outputs)
	return keyOf("", v.names.recipe(v.Recipe), outputs, inputs, contents)
}

// commonLines lists the inputs as lines does, with the names that they have in caches.
func (v *verdict) commonLines() []string {
	lines := v.lines()
	for i, line := range lines {
		if digest, p, ok := strings.Cut(line, " "); ok {
			lines[i] = digest + " " + v.names.path(p)
		}
	}
	return lines
}

// toCommon returns a result with the names in caches, and the name here of each of them.
func (m *member) toCommon(r *Result) (common *Result, here map[string]string) {
	here = make(map[string]string, len(r.Entries))
	common = r.renamed(func(p string) string {
		to := m.names.path(p)
		here[to] = p
		return to
	})
	return common, here
}

// fromCommon returns a result from a cache with the names here. Names of no output stay as they are.
func (m *member) fromCommon(r *Result) *Result {
	return r.renamed(func(p string) string {
		for _, out := range m.outputs {
			common := m.names.path(out)
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
