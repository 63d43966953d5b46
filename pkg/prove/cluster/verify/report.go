package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/junit"
)

// A Report is what came of the checks.
type Report struct {
	Cluster string  `json:"cluster"`
	Version string  `json:"version"`
	Seconds float64 `json:"seconds"`
	Rows    []Row   `json:"checks"`
}

// A Row is what came of one check.
type Row struct {
	Group       string  `json:"group"`
	Name        string  `json:"name"`
	Result      Result  `json:"result"`
	Seconds     float64 `json:"seconds"`
	Message     string  `json:"message,omitempty"`     // why it failed or was skipped
	Explanation string  `json:"explanation,omitempty"` // what the cluster says of it: Pods, events, logs
}

// A Result is one of a check.
type Result string

// The results of checks.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Count is how many rows have a result.
func (r Report) Count(result Result) int {
	n := 0
	for _, row := range r.Rows {
		if row.Result == result {
			n++
		}
	}
	return n
}

// Summary is the last line of the table.
func (r Report) Summary() string {
	return fmt.Sprintf("%d checks in %v: %d passed, %d failed, %d skipped", len(r.Rows), duration(r.Seconds, time.Second),
		r.Count(Passed), r.Count(Failed), r.Count(Skipped))
}

// A Table writes rows as they come, and then the rest of the report.
type Table struct {
	w           io.Writer
	group, name int // cells
	color       bool
}

// NewTable makes a table for the rows of some checks.
func NewTable(w io.Writer, checks []Check, color bool) *Table {
	t := &Table{w: w, group: len("GROUP"), name: len("CHECK"), color: color}
	for _, c := range checks {
		t.group, t.name = max(t.group, len(c.Group)), max(t.name, len(c.Name))
	}
	t.line("RESULT", "", "GROUP", "CHECK", "  TIME", "")
	return t
}

// Row writes one.
func (t *Table) Row(r Row) {
	message, _, _ := strings.Cut(r.Message, "\n")
	t.line(string(r.Result), map[Result]string{Passed: "32", Failed: "31", Skipped: "33"}[r.Result], r.Group, r.Name, fmt.Sprintf("%5.1fs", r.Seconds), message)
}

func (t *Table) line(result, style, group, name, time, message string) {
	cell := fmt.Sprintf("%-7s", result)
	if t.color && style != "" {
		cell = "\x1b[" + style + "m" + cell + "\x1b[m"
	}
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf("%s   %-*s   %-*s   %s   %s", cell, t.group, group, t.name, name, time, message), " "))
}

// End writes what explains failures, and the last line.
func (t *Table) End(r Report) error {
	for _, row := range r.Rows {
		if row.Result == Failed {
			fmt.Fprintf(t.w, "\n%s/%s: %s\n%s", row.Group, row.Name, row.Message, indent(row.Explanation))
		}
	}
	_, err := fmt.Fprintf(t.w, "\n%s\n", r.Summary())
	return err
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

func duration(seconds float64, unit time.Duration) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(unit)
}

// JSON writes a report as a line of JSON.
func (r Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// JUnit writes a report as JUnit's XML, a suite for each group.
func (r Report) JUnit(w io.Writer) error {
	var suites []junit.Suite
	for _, row := range r.Rows {
		if n := len(suites); n == 0 || suites[n-1].Name != row.Group {
			suites = append(suites, junit.Suite{Name: row.Group})
		}
		c := junit.Case{Class: "cluster." + row.Group, Name: row.Name, Time: junit.Seconds(row.Seconds)}
		switch row.Result {
		case Failed:
			c.Failure = &junit.Message{Message: row.Message, Text: row.Explanation}
		case Skipped:
			c.Skipped = &junit.Message{Message: row.Message}
		}
		s := &suites[len(suites)-1]
		s.Cases = append(s.Cases, c)
	}
	return junit.Write(w, "slipway cluster verify "+r.Version, duration(r.Seconds, time.Millisecond), suites...)
}
