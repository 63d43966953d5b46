package gotest

import (
	"fmt"
	"io"
	"strings"

	"slipway.build/pkg/mechanism/report"
)

// print writes what go test prints about a package. In verbose runs that is everything.
func (p *Package) print(w io.Writer, verbose bool) error {
	var text strings.Builder
	switch {
	case p.Build != "":
		text.WriteString(p.Build + p.Output)
	case verbose:
		text.WriteString(p.said)
	case p.Outcome == report.Failed:
		for _, t := range p.failed() {
			text.WriteString(p.family(t.Name, 0))
		}
		text.WriteString(p.Output)
	case p.Output != "":
		text.WriteString(lastLine(p.Output) + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// family returns what a test and those of its subtests that did not pass printed, each below the line with its outcome, as go test
// prints it.
func (p *Package) family(name string, depth int) string {
	var b strings.Builder
	indent := strings.Repeat("    ", depth)
	for _, t := range p.Tests {
		switch parent, _ := cutLast(t.Name); {
		case t.Name == name:
			head, rest := splitOutcome(t)
			b.WriteString(indent + head)
			for line := range strings.Lines(rest) {
				b.WriteString(indent + line)
			}
		case parent == name && t.Outcome == report.Failed:
			b.WriteString(p.family(t.Name, depth+1))
		}
	}
	return b.String()
}

// splitOutcome returns the line with a test's outcome, which go test -v prints last, and the lines before and after it.
func splitOutcome(t Test) (head, rest string) {
	var others strings.Builder
	for line := range strings.Lines(t.Output) {
		if trimmed := strings.TrimLeft(line, " "); head == "" && strings.HasPrefix(trimmed, "--- ") &&
			strings.Contains(trimmed, ": "+t.Name+" (") {
			head = trimmed
			continue
		}
		others.WriteString(line)
	}
	if head == "" {
		head = fmt.Sprintf("--- FAIL: %s (unfinished)\n", t.Name)
	}
	return head, others.String()
}

// cutLast returns a subtest's parent.
func cutLast(name string) (parent, last string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}
