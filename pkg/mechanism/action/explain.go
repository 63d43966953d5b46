package action

import (
	"fmt"
	"slices"
	"strings"
)

// shownDigest is how many characters of the digests inside of directories are kept: enough to tell versions of
// one file apart, which is all they are for.
const shownDigest = 16

// lines lists the inputs for an origin.
func (v *verdict) lines() []string {
	var lines []string
	for i, c := range v.inputs {
		lines = append(lines, c.String()+" "+v.member.inputs[i])
		for _, e := range c.entries {
			lines = append(lines, e.String()[:shownDigest]+" "+e.path)
		}
	}
	return lines
}

// explain says what differs from the time of the record. Inputs that are still to be made are left out;
// if there are any, there may be nothing to say.
func (j *judge) explain(v *verdict, pending map[string]string) string {
	if slices.IndexFunc(v.record.Outputs, func(o output) bool { return !slices.Contains(v.outputs, o.Path) }) >= 0 ||
		len(v.record.Outputs) != len(v.outputs) {
		return "its list of outputs changed"
	}
	unknown := "inputs or recipe changed"
	if len(pending) > 0 {
		unknown = ""
	}
	var was origin
	// An origin of another key is one whose record was not written any more.
	if err := j.ledger.read(v.ID, ".from", &was); err != nil || was.Key != v.record.Key {
		return unknown
	}
	if !slices.Equal(was.Recipe, v.Recipe) {
		return "recipe changed" + recipeChange(was.Recipe, v.Recipe)
	}
	isPending := func(p string) bool {
		for in := range pending {
			if p == in || (strings.HasSuffix(in, "/") && strings.HasPrefix(p, in)) {
				return true
			}
		}
		return false
	}
	if changed := slices.DeleteFunc(changes(was.Inputs, v.lines()), func(c change) bool { return isPending(c.path) }); len(changed) > 0 {
		return "inputs changed: " + list(changed)
	}
	return unknown
}

// recipeChange names the change if it is one short element, such as a version.
func recipeChange(was, is []string) string {
	const short = 60 // characters
	if len(was) != len(is) {
		return ""
	}
	at := -1
	for i := range is {
		switch {
		case was[i] == is[i]:
		case at >= 0:
			return ""
		default:
			at = i
		}
	}
	if at < 0 || len(was[at]) > short || len(is[at]) > short {
		return ""
	}
	return fmt.Sprintf(": %s, was %s", is[at], was[at])
}

// A change is an input that is not as it was.
type change struct {
	path string
	how  string // " (new)", " (gone)" or nothing
}

// changes compares two lists of lines. A directory is named only if nothing below it is.
func changes(was, is []string) []change {
	before := make(map[string]string, len(was))
	for _, line := range was {
		d, p, _ := strings.Cut(line, " ")
		before[p] = d
	}
	differ := make(map[string]string)
	seen := make(map[string]bool, len(is))
	for _, line := range is {
		d, p, _ := strings.Cut(line, " ")
		seen[p] = true
		switch old, ok := before[p]; {
		case !ok:
			differ[p] = " (new)"
		case old[:min(len(old), shownDigest)] != d[:min(len(d), shownDigest)]:
			differ[p] = ""
		}
	}
	for p := range before {
		if !seen[p] {
			differ[p] = " (gone)"
		}
	}
	var changed []change
	for p, how := range differ {
		changed = append(changed, change{p, how})
	}
	slices.SortFunc(changed, func(a, b change) int { return strings.Compare(a.path, b.path) })
	// Sorted, a directory stands right in front of what lies below it.
	kept := changed[:0]
	for i, c := range changed {
		if strings.HasSuffix(c.path, "/") && i+1 < len(changed) && strings.HasPrefix(changed[i+1].path, c.path) {
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

func list(changed []change) string {
	text := changed[0].path + changed[0].how
	if more := len(changed) - 1; more > 0 {
		text += fmt.Sprintf(" (+%d more)", more)
	}
	return text
}

// reasons says why a unit runs.
func (u *unit) reasons(stale []*verdict) string {
	if u.batch == nil {
		return stale[0].reason
	}
	const shown = 2
	var distinct []string
	for _, v := range stale {
		if !slices.Contains(distinct, v.reason) {
			distinct = append(distinct, v.reason)
		}
	}
	if more := len(distinct) - shown; more > 0 {
		distinct = append(distinct[:shown], fmt.Sprintf("%d other reasons", more))
	}
	return fmt.Sprintf("%d of %d: %s", len(stale), len(u.members), strings.Join(distinct, "; "))
}
