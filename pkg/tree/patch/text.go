package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	gomod "golang.org/x/mod/module"
)

// A hunk replaces lines of a file.
type hunk struct {
	before, after []string // lines with their ends
	start         bool     // it is at the start of the file
	end           bool     // it is at the end of the file: after it, the diff would show more lines
	at            int      // index of the first line, once the hunks before it are applied
	title         string   // "@@ -1,4 +1,5 @@ func main"
}

// hunks returns the hunks of a change, or of its reverse. As in git apply, a hunk that begins in the first line must be at the start,
// and one without lines after its last change at the end. Without that, lines at the end of a file could be added again.
func hunks(f *gitdiff.File, reverse bool) []hunk {
	var all []hunk
	for _, fragment := range f.TextFragments {
		old, new := fragment.OldPosition, fragment.NewPosition
		if reverse {
			old, new = new, old
		}
		h := hunk{start: old <= 1, end: fragment.TrailingContext == 0, at: max(0, int(new)-1), title: strings.TrimSpace(fragment.Header())}
		for _, l := range fragment.Lines {
			if l.Op == gitdiff.OpContext || (l.Op == gitdiff.OpDelete) != reverse {
				h.before = append(h.before, l.Line)
			}
			if l.Op == gitdiff.OpContext || (l.Op == gitdiff.OpAdd) != reverse {
				h.after = append(h.after, l.Line)
			}
		}
		all = append(all, h)
	}
	return all
}

// A line is a line of a file to patch.
type line struct {
	text string
	done bool // a hunk wrote it, so no other may match it
}

// lines splits a file into lines with their ends.
func lines(data []byte) []line {
	var all []line
	for text := range strings.Lines(string(data)) {
		all = append(all, line{text: text})
	}
	return all
}

func join(all []line) []byte {
	var b strings.Builder
	for _, l := range all {
		b.WriteString(l.text)
	}
	return []byte(b.String())
}

// A Conflict says where a patch does not apply.
type Conflict struct {
	Patch  string `json:"-"`    // name of the file
	Commit string `json:"-"`    // title; empty if the patch has one commit
	File   string `json:"file"` // repository path

	// The hunk that does not apply. Hunk is 0 if the whole file is in the way, such as one that exists already; then Why says all.
	Hunk   int    `json:"hunk,omitempty"` // the first is 1
	Hunks  int    `json:"-"`
	Header string `json:"-"`              // "@@ -1,4 +1,5 @@ func main"
	Line   int    `json:"line,omitempty"` // where the file, as patched so far, is most like the hunk

	Expected string `json:"expected,omitempty"` // what the hunk expects there: a line without its end, or words
	Found    string `json:"found,omitempty"`    // what is there
	Why      string `json:"why,omitempty"`      // words instead of Found

	// Raises are the versions of linked modules that the patch requires, and that the tree lacks.
	Raises []gomod.Version `json:"raises,omitempty"`
}

func (c *Conflict) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "patch %s does not apply", c.Patch)
	if c.Commit != "" {
		fmt.Fprintf(&b, " (commit %q)", c.Commit)
	}
	fmt.Fprintf(&b, ": %s", c.File)
	if c.Hunk == 0 {
		fmt.Fprintf(&b, ": %s", c.Why)
		return b.String()
	}
	fmt.Fprintf(&b, ", hunk %d of %d (%s), at line %d\n\texpected: %s\n\tthere is: ", c.Hunk, c.Hunks, c.Header, c.Line, c.Expected)
	if c.Why != "" {
		b.WriteString(c.Why)
	} else {
		b.WriteString(c.Found)
	}
	return b.String()
}

// patchText applies hunks to a file. It returns how many lines each has moved, or where the first one that does not apply conflicts.
func patchText(data []byte, all []hunk) (result []byte, offsets []int, bad *Conflict) {
	file := lines(data)
	for i, h := range all {
		at := h.find(file)
		if at < 0 {
			c := h.conflict(file)
			c.Hunk, c.Hunks, c.Header = i+1, len(all), h.title
			return nil, nil, c
		}
		file = slices.Replace(file, at, at+len(h.before), written(h.after)...)
		offsets = append(offsets, at-h.at)
	}
	return join(file), offsets, nil
}

// ancestor guesses the file that hunks were made for, from a file to which some do not apply: where it is most like what a hunk expects,
// the ancestor has just that.
func ancestor(data []byte, all []hunk) []byte {
	file := lines(data)
	for _, h := range all {
		from := h.find(file)
		to := from + len(h.before)
		if from < 0 {
			from = h.nearest(file)
			to = min(from+len(h.before), len(file))
			if h.start {
				from = 0
			}
			if h.end {
				to = len(file)
			}
		}
		file = slices.Replace(file, from, to, written(h.before)...)
	}
	return join(file)
}

// written returns lines that a hunk has written.
func written(texts []string) []line {
	all := make([]line, len(texts))
	for i, text := range texts {
		all[i] = line{text, true}
	}
	return all
}

// find returns the index of the first line of the place nearest to the hunk's own where it applies, or -1. Of two places equally near,
// it is the later one, as for git.
func (h hunk) find(file []line) int {
	last := len(file) - len(h.before) // the last index where it could begin
	if last < 0 {
		return -1
	}
	near := min(h.at, len(file))
	if h.start {
		near = 0
	} else if h.end {
		near = last
	}
	for distance := 0; near-distance >= 0 || near+distance <= last; distance++ {
		if h.matches(file, near+distance) {
			return near + distance
		}
		if h.matches(file, near-distance) {
			return near - distance
		}
	}
	return -1
}

// matches reports whether the hunk applies to the lines from an index on.
func (h hunk) matches(file []line, at int) bool {
	switch {
	case at < 0, at+len(h.before) > len(file), h.start && at != 0, h.end && at+len(h.before) != len(file):
		return false
	}
	for i, text := range h.before {
		if file[at+i].done || file[at+i].text != text {
			return false
		}
	}
	return true
}

// nearest returns the index of the place that is most like what the hunk expects.
func (h hunk) nearest(file []line) int {
	best, most := min(h.at, len(file)), 0
	for at := range file {
		n := 0
		for i, text := range h.before {
			if at+i < len(file) && !file[at+i].done && file[at+i].text == text && strings.TrimSpace(text) != "" {
				n++
			}
		}
		if n > most || n == most && n > 0 && distance(at, h.at) < distance(best, h.at) {
			best, most = at, n
		}
	}
	return best
}

// conflict describes the first line that differs, where the file is most like what the hunk expects.
func (h hunk) conflict(file []line) *Conflict {
	best := h.nearest(file)
	for i, text := range h.before {
		c := &Conflict{Line: best + i + 1, Expected: bare(text)}
		found := ""
		switch {
		case best+i >= len(file):
			c.Why = "the end of the file"
		case file[best+i].text != text:
			found = file[best+i].text
		case file[best+i].done:
			c.Why = "a line that another hunk has changed"
		default:
			continue
		}
		if c.Found = bare(found); c.Found == c.Expected { // only the line ends differ
			c.Expected, c.Found = strconv.Quote(text), strconv.Quote(found)
		}
		return c
	}
	if h.start && best > 0 {
		return &Conflict{Line: 1, Expected: "the start of the file", Why: fmt.Sprintf("the place at line %d", best+1)}
	}
	return &Conflict{Line: best + len(h.before) + 1, Expected: "the end of the file", Why: "other lines follow"}
}

func bare(text string) string { return strings.TrimRight(text, "\r\n") }

func distance(a, b int) int { return max(a-b, b-a) }
