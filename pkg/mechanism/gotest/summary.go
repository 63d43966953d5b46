package gotest

import (
	"fmt"
	"io"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/report"
)

// A Summary is the outcome of a run of tests.
type Summary struct {
	Packages []Package // in the order in which they ended
	Took     time.Duration
}

// A Package is a package that was tested.
type Package struct {
	Path    string
	Outcome report.Outcome // NotRun if the run ended before its tests did
	Seconds float64
	Cached  bool   // go test had the outcome in its cache
	Tests   []Test // in the order in which they started; subtests have tests of their own
	Output  string // what it printed outside of tests; the last line is go test's own
	Build   string // what a compile that failed printed

	said string // everything, only in verbose runs
}

// A Test is a test, or a subtest ("TestA/b").
type Test struct {
	Name       string
	Outcome    report.Outcome
	Unfinished bool // it failed because its package ended first: by a panic, a timeout, an exit
	Seconds    float64
	Output     string // of one that did not pass
}

// Count returns how many packages have an outcome.
func (s *Summary) Count(outcome report.Outcome) int {
	n := 0
	for _, p := range s.Packages {
		if p.Outcome == outcome {
			n++
		}
	}
	return n
}

// Join adds the packages of another run.
func (s *Summary) Join(other *Summary) {
	s.Packages = append(s.Packages, other.Packages...)
	s.Took += other.Took
}

// Text prints which packages and tests failed, and counts.
func (s *Summary) Text(w io.Writer) error {
	var b strings.Builder
	tests, cached := 0, 0
	for _, p := range s.Packages {
		if p.Cached {
			cached++
		}
		for _, t := range p.Tests {
			if t.Outcome != report.NotRun && !strings.Contains(t.Name, "/") {
				tests++
			}
		}
		if p.Outcome == report.Failed {
			fmt.Fprintf(&b, "failed: %s%s\n", p.Path, strings.TrimSuffix(": "+p.why(), ": "))
		}
	}
	if b.Len() > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(&b, "%s, %s in %v: %d passed", plural(len(s.Packages), "package"), plural(tests, "test"), s.Took.Round(time.Second/10),
		s.Count(report.Passed))
	if cached > 0 {
		fmt.Fprintf(&b, " (%d cached)", cached)
	}
	fmt.Fprintf(&b, ", %d failed", s.Count(report.Failed))
	if n := s.Count(report.Skipped); n > 0 {
		fmt.Fprintf(&b, ", %d without tests", n)
	}
	if n := s.Count(report.NotRun); n > 0 {
		fmt.Fprintf(&b, ", %d not run", n)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// why names the outermost tests that failed, or says what else happened.
func (p Package) why() string {
	var names []string
	for _, t := range p.failed() {
		name := t.Name
		if t.Unfinished {
			name += " (unfinished)"
		}
		names = append(names, name)
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, ", ")
	case strings.HasSuffix(strings.TrimSpace(p.Output), "]"): // "FAIL\tPATH [build failed]"
		last := lastLine(p.Output)
		return strings.Trim(last[strings.LastIndexByte(last, '[')+1:], "[]")
	}
	return ""
}

// failed returns the outermost tests that failed.
func (p Package) failed() []Test {
	var failed []Test
	for _, t := range p.Tests {
		if t.Outcome == report.Failed && !strings.Contains(t.Name, "/") {
			failed = append(failed, t)
		}
	}
	return failed
}

// Results returns the tests of all packages. The group of a test is its package. With subtests, each subtest has a result of its own;
// otherwise the outermost test's result has what they printed. A package that failed although none of its tests did has a result with
// the package's name.
func (s *Summary) Results(subtests bool) report.Results {
	var all report.Results
	for _, p := range s.Packages {
		results := p.results(subtests)
		if len(p.failed()) == 0 && (p.Outcome == report.Failed || p.Outcome == report.NotRun) {
			why := p.why()
			if why == "" {
				why = map[report.Outcome]string{report.Failed: "the package failed outside of its tests", report.NotRun: "interrupted"}[p.Outcome]
			}
			results = append(results, report.Result{Group: p.Path, Name: p.Path, Outcome: p.Outcome, Message: why, Details: p.Build + p.Output})
		}
		all = append(all, results...)
	}
	return all
}

func (p Package) results(subtests bool) report.Results {
	var results report.Results
	for _, t := range p.Tests {
		if strings.Contains(t.Name, "/") && !subtests {
			continue
		}
		r := report.Result{Group: p.Path, Name: t.Name, Outcome: t.Outcome, Seconds: t.Seconds}
		text := t.Output
		if !subtests {
			text = p.family(t.Name, 0)
		}
		switch {
		case t.Outcome == report.Failed && t.Unfinished:
			r.Message, r.Details = "unfinished: its package ended first", text
		case t.Outcome == report.Failed:
			r.Message, r.Details = "failed", text
		case t.Outcome == report.Skipped:
			r.Message = skipReason(t.Output)
		}
		results = append(results, r)
	}
	return results
}

// skipReason returns the last line that a skipped test printed.
func skipReason(output string) string {
	reason := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- SKIP") {
			reason = line
		}
	}
	return reason
}
