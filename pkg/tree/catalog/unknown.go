package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// An UnknownError says that somebody asked for a name that the catalog doesn't have.
type UnknownError struct {
	Kind string   // "component" or "platform"
	Name string   // as it was written
	Near []string // names that were probably meant, the likeliest first
}

func (e *UnknownError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("unknown %s %q; `slipway catalog` lists them", e.Kind, e.Name)
	}
	return fmt.Sprintf("unknown %s %q%s", e.Kind, e.Name, didYouMean(e.Near))
}

// ExitCode is what the command line ends with: 2, wrong usage.
func (e *UnknownError) ExitCode() int { return 2 }

// near returns those of names that name is probably a slip of: the ones with the fewest typing mistakes, or else
// those it is a part of ("apiserver").
func near(name string, names []string) []string {
	best := min(1+len(name)/4, 3) // typing mistakes, of which two swapped letters are two; with more all names look alike
	var typos, parts []string
	lower := strings.ToLower(name)
	for _, candidate := range slices.Sorted(slices.Values(names)) {
		if len(name) > 2 && strings.Contains(candidate, lower) {
			parts = append(parts, candidate)
		}
		if candidate == "" {
			continue
		}
		switch d := levenshtein.ComputeDistance(lower, candidate); {
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

// didYouMean is the end of a message about an unknown name: "; did you mean kubectl?", or nothing.
func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + enumerate(near, "or") + "?"
}

// enumerate returns "a, b or c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
