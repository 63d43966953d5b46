package action

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Reason says why an action runs. The zero Reason is that of an action that is skipped.
type Reason struct {
	Kind    ReasonKind `json:"kind"`
	Path    string     `json:"path,omitempty"`    // of the input or output, for kinds that name one
	Changes []Change   `json:"changes,omitempty"` // with RecipeChanged and InputsChanged: at most ten, by name
	More    int        `json:"more,omitempty"`    // how many changes there are besides
}

// A ReasonKind is the part of an action that calls for a run.
type ReasonKind string

const (
	New            ReasonKind = "new"             // there is no record of it
	RecordDamaged  ReasonKind = "record-damaged"  // its record cannot be read
	RecordOutdated ReasonKind = "record-outdated" // its record has another format
	InputEdited    ReasonKind = "input-edited"    // the input at Path was edited during the last run
	OutputsChanged ReasonKind = "outputs-changed" // it declares other outputs than before
	RecipeChanged  ReasonKind = "recipe-changed"
	InputsChanged  ReasonKind = "inputs-changed"
	KeyChanged     ReasonKind = "key-changed"    // its recipe or inputs changed; which is unknown
	OutputMissing  ReasonKind = "output-missing" // the output at Path
	OutputEdited   ReasonKind = "output-edited"  // the output at Path was edited, cut short or replaced
	FromCache      ReasonKind = "from-cache"     // a cache had its result, and only those of this tree count

	// Only decisions of a Plan have these two, if nothing else calls for a run.
	InputRemade      ReasonKind = "input-remade"       // the input at Path will be made again
	InputMaybeRemade ReasonKind = "input-maybe-remade" // the input at Path may be made again
)

// A Change is an input or a field of a recipe that differs from the last run.
type Change struct {
	Name string     `json:"name,omitempty"` // the input's path, or the field; empty for an element of a recipe without a name
	Kind ChangeKind `json:"kind"`
	Was  string     `json:"was,omitempty"` // the field's value before, if it is short
	Is   string     `json:"is,omitempty"`  // the field's value now, if it is short
}

// A ChangeKind is how something changed.
type ChangeKind string

const (
	Edited  ChangeKind = "edited"
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
)

// maxChanges is how many changes a Reason lists.
const maxChanges = 10

// changed returns a reason with as many changes as one lists.
func changed(kind ReasonKind, changes []Change) Reason {
	r := Reason{Kind: kind, Changes: changes}
	if r.More = max(0, len(changes)-maxChanges); r.More > 0 {
		r.Changes = changes[:maxChanges]
	}
	return r
}

// String returns the reason in words.
func (r Reason) String() string {
	switch r.Kind {
	case RecordDamaged:
		return "its record cannot be read"
	case RecordOutdated:
		return "its record is of another version"
	case InputEdited:
		return "input " + r.Path + " was edited while it was made"
	case OutputsChanged:
		return "its list of outputs changed"
	case RecipeChanged:
		return "recipe changed" + r.list(3)
	case InputsChanged:
		return "inputs changed" + r.list(1)
	case KeyChanged:
		return "inputs or recipe changed"
	case OutputMissing:
		return "output " + r.Path + " is missing"
	case OutputEdited:
		return "output " + r.Path + " was edited"
	case FromCache:
		return "a cache had its result"
	case InputRemade:
		return "input " + r.Path + " will be made again"
	case InputMaybeRemade:
		return "input " + r.Path + " may be made again"
	}
	return string(r.Kind)
}

// list returns the first few changes in words.
func (r Reason) list(shown int) string {
	if len(r.Changes) == 0 {
		return ""
	}
	var words []string
	for _, c := range r.Changes[:min(shown, len(r.Changes))] {
		words = append(words, c.String())
	}
	text := ": " + strings.Join(words, "; ")
	if more := len(r.Changes) + r.More - len(words); more > 0 {
		text += fmt.Sprintf(" (+%d more)", more)
	}
	return text
}

// String returns the change in words: `Version="v2", was "v1"`.
func (c Change) String() string {
	value := c.Name
	if c.Is != "" {
		value = strings.TrimPrefix(c.Name+"="+c.Is, "=")
	}
	switch {
	case c.Kind == Added:
		return value + " (new)"
	case c.Kind == Removed:
		return c.Name + " (gone)"
	case c.Was != "":
		return value + ", was " + c.Was
	}
	return value
}

// shownDigest is how many characters are kept of the digests inside of directories: enough to see that a file
// changed.
const shownDigest = 16

// recipeChanges compares two recipes: elements of the form field=value by field, and the others as a set. Of the latter,
// which have no names (a digest of code, say), it returns a change only if it is one short element.
func recipeChanges(was, is []string) []Change {
	wasFields, wasOthers := fields(was)
	isFields, isOthers := fields(is)
	names := maps.Clone(wasFields)
	maps.Copy(names, isFields)
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, before := wasFields[name]
		value, after := isFields[name]
		switch {
		case !before:
			changes = append(changes, Change{Name: name, Kind: Added, Is: short(value)})
		case !after:
			changes = append(changes, Change{Name: name, Kind: Removed, Was: short(old)})
		case old == value:
		case short(old) == "" || short(value) == "": // one of them alone would mislead
			changes = append(changes, Change{Name: name, Kind: Edited})
		default:
			changes = append(changes, Change{Name: name, Kind: Edited, Was: old, Is: value})
		}
	}
	gone := slices.DeleteFunc(slices.Clone(wasOthers), func(s string) bool { return slices.Contains(isOthers, s) })
	come := slices.DeleteFunc(slices.Clone(isOthers), func(s string) bool { return slices.Contains(wasOthers, s) })
	if len(gone) == 1 && len(come) == 1 && short(gone[0]) != "" && short(come[0]) != "" {
		changes = append(changes, Change{Kind: Edited, Was: gone[0], Is: come[0]})
	}
	return changes
}

// fields splits a recipe into elements of the form field=value, and others. The values of a field that occurs several
// times are taken together.
func fields(recipe []string) (values map[string]string, others []string) {
	values = make(map[string]string)
	for _, element := range recipe {
		name, value, ok := strings.Cut(element, "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\n\"'") {
			others = append(others, element)
			continue
		}
		if old, ok := values[name]; ok {
			value = old + " " + value
		}
		values[name] = value
	}
	return values, others
}

// short returns a value that fits into a line with others, and "" for a longer one.
func short(value string) string {
	const most = 60 // bytes
	if len(value) > most {
		return ""
	}
	return value
}

// inputChanges compares two lists of lines, by path. It returns a directory only if nothing below it changed.
func inputChanges(was, is []string) []Change {
	before := make(map[string]string, len(was))
	for _, line := range was {
		d, p, _ := strings.Cut(line, " ")
		before[p] = d
	}
	differ := make(map[string]ChangeKind)
	seen := make(map[string]bool, len(is))
	for _, line := range is {
		d, p, _ := strings.Cut(line, " ")
		seen[p] = true
		switch old, ok := before[p]; {
		case !ok:
			differ[p] = Added
		case old[:min(len(old), shownDigest)] != d[:min(len(d), shownDigest)]:
			differ[p] = Edited
		}
	}
	for p := range before {
		if !seen[p] {
			differ[p] = Removed
		}
	}
	paths := slices.Sorted(maps.Keys(differ))
	var changes []Change
	for i, p := range paths {
		// Sorted, a directory comes right before what lies below it.
		if strings.HasSuffix(p, "/") && i+1 < len(paths) && strings.HasPrefix(paths[i+1], p) {
			continue
		}
		changes = append(changes, Change{Name: p, Kind: differ[p]})
	}
	return changes
}
