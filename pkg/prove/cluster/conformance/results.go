package conformance

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"slipway.build/pkg/mechanism/report"
)

// results collects the results of specs as they come.
type results struct {
	each func(result report.Result, done, total int)

	mu     sync.Mutex
	specs  []Spec
	byName map[string]report.Result // of specs that ended
}

// printed adds a spec from the output of a suite: the spec's name, followed by labels.
func (r *results) printed(outcome report.Outcome, line string, seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line = strings.Replace(line, "[It] ", "", 1) // where a spec failed
	name := ""
	for _, s := range r.specs {
		if rest, ok := strings.CutPrefix(line, s.Name); ok && (rest == "" || strings.HasPrefix(rest, " [")) && len(s.Name) > len(name) {
			name = s.Name
		}
	}
	r.add(report.Result{Name: name, Outcome: outcome, Seconds: seconds})
}

// reported adds the report of a pass, which has more of each spec, and specs that were not printed.
func (r *results) reported(suite *suiteReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range suite.SpecReports {
		if result := s.result(); s.isSpec() && (result.Outcome != report.NotRun || result.Message != "") {
			r.add(result)
		}
	}
}

// add keeps the result of a chosen spec, and passes it on if it is the spec's first.
func (r *results) add(result report.Result) {
	if !slices.ContainsFunc(r.specs, func(s Spec) bool { return s.Name == result.Name }) {
		return
	}
	_, again := r.byName[result.Name]
	r.byName[result.Name] = result
	if !again {
		r.each(result, len(r.byName), len(r.specs))
	}
}

// all returns a result for each spec.
func (r *results) all() report.Results {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all report.Results
	for _, s := range r.specs {
		result, ok := r.byName[s.Name]
		if !ok {
			result = report.Result{Name: s.Name, Outcome: report.NotRun, Message: "the run ended before it"}
		}
		all = append(all, result)
	}
	return all
}

// A parser finds the specs that ended in a suite's output: a line with a mark and the time, and then a line with the name.
type parser struct {
	each func(outcome report.Outcome, name string, seconds float64)

	next    report.Outcome // of the spec whose name comes next
	seconds float64        // that it took
}

// ended matches the first line about a spec: • [1.5 seconds], • [FAILED] [1.5 seconds], • [PANICKED] …, S [SKIPPED] [0.1 seconds].
var ended = regexp.MustCompile(`^[•S] (\[[A-Z ]+\] )?\[(\d+\.\d+) seconds\]$`)

func (p *parser) line(line string) {
	line = strings.TrimSpace(line)
	if p.next != "" {
		p.each(p.next, line, p.seconds)
		p.next = ""
		return
	}
	found := ended.FindStringSubmatch(line)
	if found == nil || strings.Contains(found[1], "INTERRUPTED") { // as if it had not begun
		return
	}
	p.seconds, _ = strconv.ParseFloat(found[2], 64) // it matches
	switch {
	case found[1] == "":
		p.next = report.Passed
	case strings.Contains(found[1], "SKIPPED"):
		p.next = report.Skipped
	default:
		p.next = report.Failed
	}
}
