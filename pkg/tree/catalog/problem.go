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

// A Problem says what is wrong, and where.
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

func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &InvalidError{slices.Compact(p.found)}
}
