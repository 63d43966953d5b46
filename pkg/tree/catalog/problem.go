package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An InvalidError is all that is wrong with release.yaml.
type InvalidError struct {
	Problems []Problem // by line, never empty
}

// A Problem is one thing that is wrong, and where.
type Problem struct {
	File string
	Line int // 0 if it is about the whole file
	Text string
}

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String returns "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// problems collects what is wrong with a file.
type problems struct {
	file  string
	found []Problem
}

func (p *problems) add(line int, format string, args ...any) {
	p.found = append(p.found, Problem{p.file, line, fmt.Sprintf(format, args...)})
}

// unknown adds that a name is none of those it has to be one of.
func (p *problems) unknown(line int, kind, name string, names []string) {
	switch similar := near(name, names); {
	case len(similar) > 0:
		p.add(line, "unknown %s %q%s", kind, name, didYouMean(similar))
	case len(names) > 0 && len(names) < 10: // more are no help in a message
		p.add(line, "unknown %s %q; it can be %s", kind, name, enumerate(names, "or"))
	default:
		p.add(line, "unknown %s %q", kind, name)
	}
}

// once returns the texts that are not empty, without repetitions, and adds a problem for each repetition.
func (p *problems) once(kind string, texts []text) []text {
	first := map[string]int{}
	var unique []text
	for _, t := range texts {
		switch line, seen := first[t.value]; {
		case t.value == "": // was reported when it was read
		case seen:
			p.add(t.line, "%s %q is there twice, first on line %d", kind, t.value, line)
		default:
			first[t.value] = t.line
			unique = append(unique, t)
		}
	}
	return unique
}

func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &InvalidError{slices.Compact(p.found)}
}
