package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/junit"
)

// A Report is what came of a run.
type Report struct {
	Cluster string   `json:"cluster"`
	Version string   `json:"version"`
	Focus   []string `json:"focus,omitempty"`
	Skip    []string `json:"skip,omitempty"`
	Procs   int      `json:"procs"`
	Seconds float64  `json:"seconds"`
	Log     string   `json:"log"` // a file with all that e2e.test said
	Rows    []Row    `json:"specs"`
}

// A Row is what came of one spec.
type Row struct {
	Name     string  `json:"name"`
	Result   Result  `json:"result"`
	Seconds  float64 `json:"seconds,omitempty"`
	Message  string  `json:"message,omitempty"`  // why it did not pass
	Location string  `json:"location,omitempty"` // in upstream's sources
	Output   string  `json:"-"`                  // what the spec said, if it did not pass
}

// A Result is one of a spec.
type Result string

// The results of specs.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped" // by itself, as the cluster is not one that it is for
	NotRun  Result = "not run" // the run ended before
)

// Count is how many specs have a result.
func (r Report) Count(result Result) int {
	n := 0
	for _, row := range r.Rows {
		if row.Result == result {
			n++
		}
	}
	return n
}

// Summary is the last line.
func (r Report) Summary() string {
	return fmt.Sprintf("%d specs in %v: %d passed, %d failed, %d skipped, %d not run", len(r.Rows), duration(r.Seconds, time.Second),
		r.Count(Passed), r.Count(Failed), r.Count(Skipped), r.Count(NotRun))
}

// NotPassed are the specs that did not pass.
func (r Report) NotPassed() []Row {
	var rows []Row
	for _, row := range r.Rows {
		if row.Result != Passed {
			rows = append(rows, row)
		}
	}
	return rows
}

// WriteRow writes a spec that ended as a line of its own.
func WriteRow(w io.Writer, row Row, done, total int, color bool) {
	result := fmt.Sprintf("%-7s", row.Result)
	if style := map[Result]string{Passed: "32", Failed: "31", Skipped: "33"}[row.Result]; color && style != "" {
		result = "\x1b[" + style + "m" + result + "\x1b[m"
	}
	took := "      " // where several run at once, only the report says it
	if row.Seconds > 0 {
		took = fmt.Sprintf("%5.1fs", row.Seconds)
	}
	fmt.Fprintf(w, "%*d/%d   %s   %s   %s\n", len(fmt.Sprint(total)), done, total, result, took, row.Name)
}

// reasonLines are how many lines of a reason a summary has: some are whole objects.
const reasonLines = 6

// Text writes the specs that did not pass, each with its reason, and the last line.
func (r Report) Text(w io.Writer) error {
	for _, row := range r.NotPassed() {
		fmt.Fprintf(w, "\n%s: %s\n", row.Result, row.Name)
		if row.Location != "" {
			fmt.Fprintf(w, "    at %s\n", row.Location)
		}
		if row.Message == "" {
			continue
		}
		lines := strings.Split(strings.TrimSpace(row.Message), "\n")
		for _, line := range lines[:min(len(lines), reasonLines)] {
			fmt.Fprintf(w, "    %s\n", line)
		}
		if more := len(lines) - reasonLines; more > 0 {
			fmt.Fprintf(w, "    … %d more lines in the log, and in what --json and --junit write\n", more)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\nlog: %s\n", r.Summary(), r.Log)
	return err
}

func duration(seconds float64, unit time.Duration) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(unit)
}

// JSON writes a report as a line of JSON.
func (r Report) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// JUnit writes a report as JUnit's XML. Specs that did not run are among those that were skipped: JUnit knows no other word.
func (r Report) JUnit(w io.Writer) error {
	took := duration(r.Seconds, time.Millisecond)
	s := junit.Suite{Name: "conformance " + r.Version, Took: took}
	for _, row := range r.Rows {
		c := junit.Case{Class: "conformance", Name: row.Name, Time: junit.Seconds(row.Seconds), Output: row.Output}
		switch row.Result {
		case Failed:
			first, _, _ := strings.Cut(row.Message, "\n")
			c.Failure = &junit.Message{Message: first, Text: row.Message + "\n" + row.Location}
		case Skipped, NotRun:
			c.Skipped = &junit.Message{Message: strings.TrimSpace(string(row.Result) + ": " + row.Message)}
		}
		s.Cases = append(s.Cases, c)
	}
	return junit.Write(w, "slipway cluster conformance "+r.Version, took, s)
}
