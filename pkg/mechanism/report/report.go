// Package report holds the results of checks and writes them as a table, as text, as JSON and as JUnit's XML.
//
// A program collects Results, one for each check, and shows each in a [Table] as it comes.
//
// Results are plain data, and encoding/json writes them. A program that reports more (which cluster, which version) puts
// them into a struct of its own.
//
// The few elements of JUnit's XML are declared here, because no library fits. jstemmer/go-junit-report has had no release since 2023, and
// its types write control characters as they are, which XML forbids. joshdk/go-junit only reads. Ginkgo's reporters need
// golang.org/x/tools.
//
// # What must never be in here
//
// What is checked, and which command or flag shows it.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Outcome says how a check ended.
type Outcome string

// The outcomes of checks.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // the check does not apply here
	NotRun  Outcome = "not run" // the run ended before the check did
)

// A Result is the outcome of one check.
type Result struct {
	Group    string  `json:"group,omitempty"`
	Name     string  `json:"name"` // unique in its group
	Outcome  Outcome `json:"result"`
	Seconds  float64 `json:"seconds,omitempty"`
	Message  string  `json:"message,omitempty"`     // why the check did not pass, or what it measured
	Location string  `json:"location,omitempty"`    // file and line of the check's source
	Details  string  `json:"explanation,omitempty"` // what helps to understand a failure, in lines
	Output   string  `json:"-"`                     // what the check printed; only in JUnit's XML
}

// title returns the group and name.
func (r Result) title() string { return strings.TrimPrefix(r.Group+"/"+r.Name, "/") }

// Results are the results of one run, in the order of a table, each group together.
type Results []Result

// Count returns how many results have one of the outcomes.
func (rs Results) Count(outcomes ...Outcome) int {
	n := 0
	for _, r := range rs {
		if slices.Contains(outcomes, r.Outcome) {
			n++
		}
	}
	return n
}

// Summary counts the results in a line. The noun is what they are called, such as "checks".
func (rs Results) Summary(noun string, took time.Duration) string {
	text := fmt.Sprintf("%d %s in %v: %d passed, %d failed, %d skipped", len(rs), noun, took.Round(time.Second),
		rs.Count(Passed), rs.Count(Failed), rs.Count(Skipped))
	if n := rs.Count(NotRun); n > 0 {
		text += fmt.Sprintf(", %d not run", n)
	}
	return text
}

// firstLine returns a message's first line, for a table and for JUnit's attribute.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}
