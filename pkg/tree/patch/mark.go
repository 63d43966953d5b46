package patch

import (
	"fmt"
	"slices"
)

// Mark applies a patch that conflicts: every hunk that applies, and for the others conflict markers, as git's, where the file is most
// like what the hunk expects. Between the markers is what is there, what the hunk expects, and what it makes of that. A whole change of
// a file that cannot be made, such as of a binary file, or of a file that does not exist, is left out if nothing can be marked.
//
// It returns the files that a person must decide about: those with markers, and those that were left out.
func (o *Overlay) Mark(p *Patch) (marked, leftOut []string, err error) {
	for _, c := range p.Commits {
		for _, f := range c.Files {
			a := o.attempt(false)
			conflict, err := a.file(f)
			if err != nil {
				return nil, nil, err
			}
			if conflict == nil {
				for name, change := range a.tree.changes {
					o.Set(name, change)
				}
				continue
			}
			data, err := o.ReadFile(f.Old)
			if f.Old == "" || f.diff.IsBinary || missing(err) {
				leftOut = append(leftOut, f.Path())
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			name := f.Path()
			if name != f.Old {
				if _, err := o.ReadFile(name); !missing(err) { // there is another file already, or it cannot be read
					leftOut = append(leftOut, name)
					continue
				}
				if !f.Copy {
					o.Set(f.Old, Change{Removed: true})
				}
			}
			o.Set(name, Change{Data: mark(data, hunks(f.diff, false), p.Name)})
			marked = append(marked, name)
		}
	}
	return marked, leftOut, nil
}

// mark applies the hunks that apply, and marks the others.
func mark(data []byte, all []hunk, patch string) []byte {
	file := lines(data)
	for _, h := range all {
		at, n := h.find(file), len(h.before)
		var text []string
		if at >= 0 {
			text = h.after
		} else {
			at = h.nearest(file)
			n = min(n, len(file)-at)
			text = h.marked(file[at:at+n], patch)
		}
		replacement := make([]line, 0, len(text))
		for _, t := range text {
			replacement = append(replacement, line{t, true})
		}
		file = slices.Replace(file, at, at+n, replacement...)
	}
	return join(file)
}

// nearest returns the index of the place that is most like what the hunk expects.
func (h hunk) nearest(file []line) int {
	best, most := min(h.at, len(file)), 0
	for at := range file {
		n := 0
		for i, text := range h.before {
			if at+i < len(file) && !file[at+i].done && file[at+i].text == text && bare(text) != "" {
				n++
			}
		}
		if n > most || n == most && n > 0 && distance(at, h.at) < distance(best, h.at) {
			best, most = at, n
		}
	}
	return best
}

// marked returns the lines of a conflict. What is the same at its start and at its end stays outside of it.
func (h hunk) marked(there []line, patch string) []string {
	var is []string
	for _, l := range there {
		is = append(is, l.text)
	}
	expected, wanted := h.before, h.after
	var head, tail []string
	for len(is) > 0 && len(expected) > 0 && len(wanted) > 0 && is[0] == expected[0] && is[0] == wanted[0] {
		head = append(head, is[0])
		is, expected, wanted = is[1:], expected[1:], wanted[1:]
	}
	for {
		i, e, w := len(is)-1, len(expected)-1, len(wanted)-1
		if i < 0 || e < 0 || w < 0 || is[i] != expected[e] || is[i] != wanted[w] {
			break
		}
		tail = append(tail, is[i])
		is, expected, wanted = is[:i], expected[:e], wanted[:w]
	}
	slices.Reverse(tail)
	return slices.Concat(head,
		[]string{"<<<<<<< what is there\n"}, ended(is),
		[]string{"||||||| what the patch expects there\n"}, ended(expected),
		[]string{"=======\n"}, ended(wanted),
		[]string{fmt.Sprintf(">>>>>>> %s\n", patch)}, tail)
}

// ended returns lines of which the last one has an end, so that a marker can follow.
func ended(lines []string) []string {
	lines = slices.Clone(lines)
	if n := len(lines); n > 0 && bare(lines[n-1]) == lines[n-1] {
		lines[n-1] += "\n"
	}
	return lines
}
