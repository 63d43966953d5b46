package gotest

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/report"
)

// A Summary is the outcome of a run of tests.
type Summary struct {
	Packages []*Package // in the order in which they ended
	Took     time.Duration
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

// why names the outermost tests that failed, or says what else did.
func (p *Package) why() string {
	var names []string
	for _, t := range p.failed() {
		name := t.Name
		if t.Unfinished {
			name += " (unfinished)"
		}
		names = append(names, name)
	}
	if _, reason, ok := strings.Cut(p.lastLine(), "["); ok && names == nil { // "FAIL\tPATH [build failed]"
		return strings.TrimSuffix(reason, "]")
	}
	return strings.Join(names, ", ")
}

// Results returns the tests of all packages. The group of a test is its package. With subtests, each subtest has a result of its own;
// otherwise the outermost test's result has what they printed. A package that failed although none of its tests did has a result with
// the package's name.
func (s *Summary) Results(subtests bool) report.Results {
	var all report.Results
	for _, p := range s.Packages {
		for _, t := range p.Tests {
			if subtests || !strings.Contains(t.Name, "/") {
				all = append(all, p.result(t, subtests))
			}
		}
		if p.Outcome == report.NotRun || p.Outcome == report.Failed && len(p.failed()) == 0 {
			what := map[report.Outcome]string{report.Failed: "the package failed outside of its tests", report.NotRun: "interrupted"}
			all = append(all, report.Result{Group: p.Path, Name: p.Path, Outcome: p.Outcome, Message: cmp.Or(p.why(), what[p.Outcome]),
				Details: p.Build + p.Output()})
		}
	}
	return all
}

func (p *Package) result(t *Test, subtests bool) report.Result {
	r := report.Result{Group: p.Path, Name: t.Name, Outcome: t.Outcome, Seconds: t.Seconds}
	switch {
	case t.Outcome == report.Skipped: // the reason is the last line that the test printed
		text := strings.TrimSpace(t.output.String())
		r.Message = strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	case t.Outcome != report.Failed:
	case subtests:
		r.Message, r.Details = "failed", t.Output()
	default:
		r.Message, r.Details = "failed", p.family(t)
	}
	if t.Unfinished {
		r.Message = "unfinished: its package ended first"
	}
	return r
}
