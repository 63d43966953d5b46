package conformance

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/mechanism/report"
)

// results collects the results of specs as they come.
type results struct {
	each func(result report.Result, done, total int)

	mu     sync.Mutex
	specs  []Spec
	byName map[string]report.Result // of specs that ended
	since  time.Time                // when the last spec ended, or the pass began
}

func newResults(specs []Spec, each func(report.Result, int, int)) *results {
	return &results{each: each, specs: specs, byName: map[string]report.Result{}}
}

// begin notes that a pass begins.
func (r *results) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Now()
}

// posted notes what e2e.test posts when a spec ends. That does not say how long the spec took, which is known only if it ran
// alone.
func (r *results) posted(outcome report.Outcome, name string, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := report.Result{Name: name, Outcome: outcome}
	if alone {
		result.Seconds = time.Since(r.since).Seconds()
	}
	r.since = time.Now()
	r.note(result)
}

// reported notes the report of a pass, which knows more, and also specs that were not posted.
func (r *results) reported(reports reports) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, suite := range reports {
		for _, s := range suite.SpecReports {
			if result := s.result(); s.isSpec() && (result.Outcome != report.NotRun || result.Message != "") {
				r.note(result)
			}
		}
	}
}

// note keeps the result of a chosen spec, and passes it on if it is the spec's first.
func (r *results) note(result report.Result) {
	if !slices.ContainsFunc(r.specs, func(s Spec) bool { return s.Name == result.Name }) {
		return
	}
	_, known := r.byName[result.Name]
	r.byName[result.Name] = result
	if !known {
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

// A progress is the server that e2e.test posts its progress to.
type progress struct {
	listener net.Listener
	server   *http.Server
}

// listen starts the server on loopback.
func listen(each func(outcome report.Outcome, name string)) (*progress, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &progress{l, &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var post struct{ Msg string }
		if err := json.NewDecoder(io.LimitReader(r.Body, 16<<20)).Decode(&post); err != nil { // each post has the names of all failed specs
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if name, ok := strings.CutPrefix(post.Msg, "PASSED "); ok {
			each(report.Passed, strings.TrimSpace(name))
		} else if name, ok := strings.CutPrefix(post.Msg, "FAILED "); ok {
			each(report.Failed, strings.TrimSpace(name))
		}
	})}}
	go func() { _ = p.server.Serve(l) }() // until it is closed
	return p, nil
}

func (p *progress) address() string { return "http://" + p.listener.Addr().String() + "/" }

func (p *progress) close() { _ = p.server.Close() }
