// Package suggest says which name was probably meant where a name is unknown.
//
// What must never be in here: any list of names, and advice that names a command or a flag (package cli).
package suggest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// An UnknownError is a request for a name that does not exist.
type UnknownError struct {
	Kind  string   // "component", "platform"
	Name  string   // as it was written
	Near  []string // names that were probably meant, the likeliest first
	Names []string // all that there are, where they are few
}

// Unknown returns the error for a name that is none of names.
func Unknown(kind, name string, names []string) *UnknownError {
	e := &UnknownError{Kind: kind, Name: name, Near: Near(name, names)}
	if len(names) <= 12 { // more are no help in a message
		e.Names = names
	}
	return e
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("unknown %s %q%s", e.Kind, e.Name, DidYouMean(e.Near))
	if len(e.Near) == 0 && len(e.Names) > 0 {
		text += "; it can be " + Enumerate(e.Names, "or")
	}
	return text
}

// BadRequest marks the error as the request's fault: see package badrequest.
func (*UnknownError) BadRequest() {}

// Near returns up to three of names that name is probably a slip of: the ones with the fewest typing mistakes, or else
// those it is a part of ("apiserver").
func Near(name string, names []string) []string {
	best := min(1+len(name)/4, 3) // typing mistakes, where two swapped letters count as two; with more, all names look alike
	var typos, parts []string
	lower := strings.ToLower(name)
	for _, candidate := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if candidate == "" {
			continue
		}
		known := strings.ToLower(candidate)
		if len(name) > 2 && strings.Contains(known, lower) {
			parts = append(parts, candidate)
		}
		switch d := levenshtein.ComputeDistance(lower, known); {
		case d < best:
			best, typos = d, []string{candidate}
		case d == best:
			typos = append(typos, candidate)
		}
	}
	found := typos
	if len(found) == 0 {
		found = parts
	}
	return found[:min(3, len(found))]
}

// DidYouMean returns the end of a message about an unknown name: "; did you mean kubectl?", or nothing.
func DidYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + Enumerate(near, "or") + "?"
}

// Enumerate returns "a, b or c".
func Enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
