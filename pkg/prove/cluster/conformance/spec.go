package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A Spec is one of e2e.test's.
type Spec struct {
	Name   string
	Serial bool // nothing may run beside it
}

// reports are what ginkgo writes of a run, as far as it matters here.
type reports []struct {
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

func readReport(file string) (reports, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r reports
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// isSpec tells specs from what is done before and after them.
func (s specReport) isSpec() bool { return s.LeafNodeType == "It" }

func (s specReport) name() string {
	return strings.TrimSpace(strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " "))
}

func (s specReport) has(label string) bool {
	return slices.Contains(s.LeafNodeLabels, label) ||
		slices.ContainsFunc(s.ContainerHierarchyLabels, func(labels []string) bool { return slices.Contains(labels, label) })
}

// chosen are the specs that a dry run would not skip.
func chosen(r reports) []Spec {
	var specs []Spec
	for _, suite := range r {
		for _, s := range suite.SpecReports {
			if s.isSpec() && s.State == "passed" {
				specs = append(specs, Spec{s.name(), s.has("Serial")})
			}
		}
	}
	return specs
}

// failure says why a suite failed besides its specs: what was to be done before them, or the time that it had.
func (r reports) failure() string {
	var why []string
	for _, suite := range r {
		why = append(why, suite.SpecialSuiteFailureReasons...)
		for _, s := range suite.SpecReports {
			if !s.isSpec() && s.State != "passed" && s.State != "skipped" && s.Failure.Message != "" {
				why = append(why, s.LeafNodeType+": "+s.Failure.Message)
			}
		}
	}
	return strings.Join(why, "; ")
}

// row is what came of a spec.
func (s specReport) row() Row {
	row := Row{Name: s.name(), Result: Failed, Seconds: s.RunTime.Seconds(), Message: strings.TrimSpace(s.Failure.Message)}
	switch s.State {
	case "passed":
		return Row{Name: row.Name, Result: Passed, Seconds: row.Seconds}
	case "skipped", "pending":
		row.Result = Skipped
		if row.Message == "" { // nobody skipped it: the run ended before it
			return Row{Name: row.Name, Result: NotRun}
		}
		return row
	case "interrupted": // it has not come to its end, and so has no result
		return Row{Name: row.Name, Result: NotRun, Seconds: row.Seconds, Message: "interrupted: " + row.Message}
	case "failed":
	default: // panicked, aborted, timedout
		row.Message = strings.TrimSpace(s.State + ": " + row.Message)
	}
	if at := s.Failure.Location; at.FileName != "" {
		row.Location = fmt.Sprintf("%s:%d", at.FileName, at.LineNumber)
	}
	row.Output = s.CapturedGinkgoWriterOutput
	return row
}
