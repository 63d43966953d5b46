package action

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Names translates between the names of folders here and in caches: see [Graph.Folders].
type names struct{ common, here *strings.Replacer }

func namesOf(folders map[string]string) names {
	var to, from []string
	for _, here := range slices.Sorted(maps.Keys(folders)) {
		to, from = append(to, here, folders[here]), append(from, folders[here], here)
	}
	return names{strings.NewReplacer(to...), strings.NewReplacer(from...)}
}

func replaceAll(r *strings.Replacer, texts []string) []string {
	replaced := make([]string, len(texts))
	for i, text := range texts {
		replaced[i] = r.Replace(text)
	}
	return replaced
}

// commonKey returns the key in caches: the digest of all that decides the outputs, whatever the action is called, and by the common names
// of folders.
func (v *verdict) commonKey() string {
	common := v.names.common
	inputs := replaceAll(common, v.member.inputs)
	order := make([]int, len(inputs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(inputs[i], inputs[j]) })
	contents := make([]content, len(order))
	for i, from := range order {
		contents[i] = v.inputs[from]
	}
	slices.Sort(inputs)
	outputs := replaceAll(common, v.outputs)
	slices.Sort(outputs)
	return keyOf("", replaceAll(common, v.Recipe), outputs, inputs, contents)
}

// renamed returns a result with other names, and the old name of each new one.
func (r *Result) renamed(by *strings.Replacer) (*Result, map[string]string) {
	other := *r
	other.Entries = slices.Clone(r.Entries)
	old := make(map[string]string, len(r.Entries))
	for i := range other.Entries {
		e := &other.Entries[i]
		was := e.Path
		e.Path = by.Replace(was)
		old[e.Path] = was
	}
	return &other, old
}
