package patch

import (
	"fmt"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// A hunk says that some lines of a file become others.
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

// patchText applies hunks to a file. It returns how many lines each has moved, or the hunk that does not apply.
func patchText(data []byte, all []hunk) (result []byte, offsets []int, bad *mismatch) {
	file := lines(data)
	for i, h := range all {
		at := h.find(file)
		if at < 0 {
			return nil, nil, h.mismatch(file, i)
		}
		rest := file[at+len(h.before):]
		patched := append([]line{}, file[:at]...)
		for _, text := range h.after {
			patched = append(patched, line{text, true})
		}
		file = append(patched, rest...)
		offsets = append(offsets, at-h.at)
	}
	return join(file), offsets, nil
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

// A mismatch says where a hunk does not apply.
type mismatch struct {
	hunk     int // index
	title    string
	line     int // number of the line in the file; behind the last one if the file is too short
	expected string
	found    string // "" if the file ends there, or what else is in the way
	why      string
}

// mismatch finds the place that is most like what the hunk expects, and its first line that is not.
func (h hunk) mismatch(file []line, index int) *mismatch {
	best, most := min(h.at, len(file)), -1
	for at := range len(file) + 1 {
		n := 0
		for i, text := range h.before {
			if at+i < len(file) && file[at+i].text == text && strings.TrimSpace(text) != "" {
				n++
			}
		}
		if n > most || n == most && distance(at, h.at) < distance(best, h.at) {
			best, most = at, n
		}
	}
	if most == 0 {
		best = min(h.at, len(file))
	}
	m := &mismatch{hunk: index, title: h.title}
	for i, text := range h.before {
		switch {
		case best+i >= len(file):
			m.line, m.expected, m.why = best+i+1, text, "the end of the file"
			return m
		case file[best+i].text != text:
			m.line, m.expected, m.found = best+i+1, text, file[best+i].text
			return m
		case file[best+i].done:
			m.line, m.expected, m.why = best+i+1, text, "a line that another hunk has changed"
			return m
		}
	}
	m.line, m.why = best+len(h.before)+1, "other lines follow"
	m.expected = "the end of the file"
	if h.start && best > 0 {
		m.line, m.expected, m.why = 1, "the start of the file", fmt.Sprintf("the place at line %d", best+1)
	}
	return m
}

func distance(a, b int) int { return max(a-b, b-a) }
