package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/report"
)

// A Spec is a spec of e2e.test.
type Spec struct {
	Name   string
	Serial bool // it must not run beside others
}

// A suiteReport is the part of ginkgo's report that is read here.
type suiteReport struct {
	SpecReports                []specReport
	SpecialSuiteFailureReasons []string
}

type specReport struct {
	ContainerHierarchyTexts  []string
	ContainerHierarchyLabels [][]string
	LeafNodeType             string
	LeafNodeText             string
	LeafNodeLabels           []string
	State                    string
	RunTime                  time.Duration
	Failure                  struct {
		Message  string
		Location struct {
			FileName   string
			LineNumber int
		}
	}
	CapturedGinkgoWriterOutput string
}

// readReport reads ginkgo's report of a single suite. It is an error if the suite did not finish.
func readReport(file string) (*suiteReport, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var suites []suiteReport
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(suites) != 1 {
		return nil, fmt.Errorf("%s: it is of %d suites, not of one", file, len(suites))
	}
	return &suites[0], nil
}

// isSpec reports whether it is a spec, and not a step before or after specs.
func (s specReport) isSpec() bool { return s.LeafNodeType == "It" }

func (s specReport) name() string {
	return strings.TrimSpace(strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " "))
}

func (s specReport) has(label string) bool {
	return slices.Contains(s.LeafNodeLabels, label) ||
		slices.ContainsFunc(s.ContainerHierarchyLabels, func(labels []string) bool { return slices.Contains(labels, label) })
}

// chosen returns the specs that a dry run did not skip.
func (r *suiteReport) chosen() []Spec {
	var specs []Spec
	for _, s := range r.SpecReports {
		if s.isSpec() && s.State == "passed" {
			specs = append(specs, Spec{s.name(), s.has("Serial")})
		}
	}
	return specs
}

// failure returns why a suite failed apart from its specs: in a step around them, or for lack of time.
func (r *suiteReport) failure() string {
	why := r.SpecialSuiteFailureReasons
	for _, s := range r.SpecReports {
		if !s.isSpec() && s.State != "passed" && s.State != "skipped" && s.Failure.Message != "" {
			why = append(why, s.LeafNodeType+": "+s.Failure.Message)
		}
	}
	return strings.Join(why, "; ")
}

// result returns the result of a spec.
func (s specReport) result() report.Result {
	r := report.Result{Name: s.name(), Seconds: s.RunTime.Seconds(), Message: strings.TrimSpace(s.Failure.Message)}
	switch s.State {
	case "passed":
		r.Outcome, r.Message = report.Passed, ""
		return r
	case "skipped", "pending":
		r.Outcome = report.Skipped
		if r.Message == "" { // it did not skip itself: the run ended before it
			r.Outcome, r.Seconds = report.NotRun, 0
		}
		return r
	case "interrupted":
		r.Outcome, r.Message = report.NotRun, "interrupted: "+r.Message
		return r
	case "failed":
	default: // panicked, aborted, timedout
		r.Message = strings.TrimSpace(s.State + ": " + r.Message)
	}
	r.Outcome, r.Output = report.Failed, s.CapturedGinkgoWriterOutput
	if at := s.Failure.Location; at.FileName != "" {
		r.Location = fmt.Sprintf("%s:%d", at.FileName, at.LineNumber)
	}
	return r
}
