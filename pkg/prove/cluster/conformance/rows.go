package conformance

import (
	"sync"
	"time"
)

// rows are what has come of specs until now.
type rows struct {
	each func(row Row, done, total int)

	mu    sync.Mutex
	specs []Spec
	by    map[string]Row
	since time.Time // when the last spec ended, or the pass began
	done  int
}

func newRows(specs []Spec, each func(Row, int, int)) *rows {
	return &rows{each: each, specs: specs, by: map[string]Row{}}
}

func (r *rows) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Now()
}

// told notes what e2e.test tells while it runs. How long a spec took it does not say; where one runs at a time it can be told.
func (r *rows) told(result Result, name string, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := Row{Name: name, Result: result}
	if alone {
		row.Seconds = time.Since(r.since).Seconds()
	}
	r.since = time.Now()
	r.note(row)
}

// reported notes what a pass's report says: what it knows better, and what was not told.
func (r *rows) reported(reports reports) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, suite := range reports {
		for _, s := range suite.SpecReports {
			if row := s.row(); s.isSpec() && (row.Result != NotRun || row.Message != "") {
				r.note(row)
			}
		}
	}
}

// note keeps a row, and tells of it if it is the first of its spec.
func (r *rows) note(row Row) {
	if !r.wanted(row.Name) {
		return
	}
	_, known := r.by[row.Name]
	r.by[row.Name] = row
	if !known {
		r.done++
		r.each(row, r.done, len(r.specs))
	}
}

func (r *rows) wanted(name string) bool {
	for _, s := range r.specs {
		if s.Name == name {
			return true
		}
	}
	return false
}

// all has a row for each spec.
func (r *rows) all() []Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Row
	for _, s := range r.specs {
		row, ok := r.by[s.Name]
		if !ok {
			row = Row{Name: s.Name, Result: NotRun, Message: "the run ended before it"}
		}
		all = append(all, row)
	}
	return all
}
