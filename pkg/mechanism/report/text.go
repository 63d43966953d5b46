package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Table writes results as they come, a line each, in columns that fit those it was made for.
type Table struct {
	w           io.Writer
	group, name int // widths in characters
	color       bool
}

// NewTable returns a table for results with the groups and names of those that are planned, and writes its heading.
func NewTable(w io.Writer, planned Results, color bool) *Table {
	t := &Table{w: w, group: len("GROUP"), name: len("CHECK"), color: color}
	for _, r := range planned {
		t.group, t.name = max(t.group, len(r.Group)), max(t.name, len(r.Name))
	}
	t.line(fmt.Sprintf("%-7s", "RESULT"), "GROUP", "CHECK", "  TIME", "")
	return t
}

// Write writes a result's line.
func (t *Table) Write(r Result) {
	t.line(r.Outcome.cell(t.color), r.Group, r.Name, fmt.Sprintf("%5.1fs", r.Seconds), firstLine(r.Message))
}

func (t *Table) line(outcome, group, name, time, message string) {
	text := fmt.Sprintf("%s   %-*s   %-*s   %s   %s", outcome, t.group, group, t.name, name, time, message)
	fmt.Fprintln(t.w, strings.TrimRight(text, " "))
}

// WriteCounted writes a result as a line of its own that says how many of a total have ended. It suits names that are too
// long for a column.
func WriteCounted(w io.Writer, r Result, done, total int, color bool) {
	took := "      " // unknown until the run ends, where several checks run at once
	if r.Seconds > 0 {
		took = fmt.Sprintf("%5.1fs", r.Seconds)
	}
	fmt.Fprintf(w, "%*d/%d   %s   %s   %s\n", len(fmt.Sprint(total)), done, total, r.Outcome.cell(color), took, r.title())
}

// cell returns the outcome as wide as the widest one, colored if asked.
func (o Outcome) cell(color bool) string {
	text := fmt.Sprintf("%-7s", o)
	if style := map[Outcome]string{Passed: "32", Failed: "31", Skipped: "33", NotRun: "33"}[o]; color && style != "" {
		return "\x1b[" + style + "m" + text + "\x1b[m"
	}
	return text
}

// messageLines is how many lines of a message Explain writes: some are whole objects.
const messageLines = 6

// Explain writes the results that have one of the outcomes, each with its reason and details.
func (rs Results) Explain(w io.Writer, outcomes ...Outcome) error {
	var b strings.Builder
	for _, r := range rs {
		if !slices.Contains(outcomes, r.Outcome) {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n", r.Outcome, r.title())
		lines := textLines(r.Message)
		if more := len(lines) - messageLines; more > 0 {
			lines = append(lines[:messageLines], fmt.Sprintf("… %d more lines", more))
		}
		if r.Location != "" {
			lines = slices.Insert(lines, 0, "at "+r.Location)
		}
		for _, line := range append(lines, textLines(r.Details)...) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// textLines returns the lines of text without blank ones at its end.
func textLines(text string) []string {
	text = strings.TrimRight(text, "\n ")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
