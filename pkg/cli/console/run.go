package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// A run is what the events so far add up to. All views but JSON, which is the events, are views of it.
type run struct {
	began    time.Time     // of the first event
	last     time.Time     // of the latest
	took     time.Duration // once it is finished
	waiting  string        // for whom, while another run holds the lock
	planned  int           // actions in the graph
	done     int           // actions
	skipped  int           // actions
	failed   int           // jobs
	lost     int           // actions that failed with their job
	running  []*job        // in the order they started
	over     []*job        // in the order they ended
	files    map[string]action.File
	finished bool
	err      string // of the run, when it is finished
}

// A job is what a person waits for: an action, or the actions that a batch makes together.
type job struct {
	id     string
	phase  string
	why    string // it was not skipped
	by     string // what did the work
	start  time.Time
	end    time.Time
	memory int64 // peak, bytes; 0 if not measured
	files  []action.File

	done, total int64  // progress; total is 0 if unknown
	text        string // unit of progress, or the latest

	batch   int      // number of actions made together; 0 if this is a single action
	members []string // those of them that ended
	failed  bool
	failure string // the error
}

func (j *job) took() time.Duration { return j.end.Sub(j.start) }

// add takes in the next event, and returns the job that ended with it, if one did.
func (r *run) add(ev action.Event) (ended *job) {
	if r.finished { // the same view shows one run after the other
		*r = run{}
	}
	if r.began.IsZero() {
		r.began, r.files = ev.Time, map[string]action.File{}
	}
	r.last, r.waiting = ev.Time, ""
	for _, file := range ev.Files {
		r.files[file.Path] = file
	}
	switch ev.Kind {
	case action.Waiting:
		r.waiting = cmp.Or(oneLine(ev.Text), "another run")
	case action.Planned:
		r.planned = int(ev.Total)
	case action.Skipped:
		r.skipped++
	case action.Started:
		r.running = append(r.running, started(ev))
	case action.Progress:
		r.progress(ev)
	case action.Done:
		return r.finish(ev)
	case action.Failed:
		return r.fail(ev)
	case action.Finished:
		r.finished, r.err = true, ev.Text
		r.took = cmp.Or(ev.Duration, ev.Time.Sub(r.began))
	}
	return nil
}

// started is the job that begins with ev. Of a batch, the event says how many of its actions are made:
// "3 of 11: inputs changed".
func started(ev action.Event) *job {
	j := &job{id: ev.Action, phase: ev.Phase, why: oneLine(ev.Text), by: ev.By, start: ev.Time}
	var stale, all int
	if n, _ := fmt.Sscanf(j.why, "%d of %d", &stale, &all); n == 2 {
		j.batch = stale
	}
	return j
}

func (r *run) progress(ev action.Event) {
	i := slices.IndexFunc(r.running, func(j *job) bool { return j.id == ev.Action })
	if i < 0 {
		return
	}
	j := r.running[i]
	j.done, j.total, j.text, j.by = ev.Done, ev.Total, oneLine(ev.Text), cmp.Or(ev.By, j.by)
}

// finish takes in a Done event: the end of an action's job, or of one of a batch's actions.
func (r *run) finish(ev action.Event) (ended *job) {
	j := r.jobOf(ev)
	if j.id == ev.Action && len(j.members) > 0 { // the batch itself, after its actions
		return r.close(j, ev)
	}
	r.done++
	j.memory = max(j.memory, ev.Memory)
	j.by = cmp.Or(ev.By, j.by)
	j.files = append(j.files, ev.Files...)
	if j.id == ev.Action {
		return r.close(j, ev)
	}
	j.members = append(j.members, ev.Action)
	if len(j.members) < j.batch {
		return nil
	}
	return r.close(j, ev)
}

// fail takes in a Failed event. When a batch fails, its actions fail for one and the same reason: that is told
// once.
func (r *run) fail(ev action.Event) (ended *job) {
	j := r.jobOf(ev)
	if j.failed {
		j.members = append(j.members, ev.Action)
		return nil
	}
	r.failed++
	r.lost += max(1, j.batch-len(j.members))
	j.failed, j.by = true, cmp.Or(ev.By, j.by)
	j.failure = strings.TrimPrefix(strings.TrimPrefix(ev.Text, ev.Action+": "), j.id+": ")
	return r.close(j, ev)
}

// jobOf is the job that an action's end belongs to: its own, or that of the batch that it is in. An action of which no start
// was seen gets a job of its own.
func (r *run) jobOf(ev action.Event) *job {
	id := cmp.Or(ev.Batch, ev.Action)
	if i := slices.IndexFunc(r.running, func(j *job) bool { return j.id == id }); i >= 0 {
		return r.running[i]
	}
	for _, j := range slices.Backward(r.over) {
		if j.id == id && j.batch > 0 {
			return j
		}
	}
	return &job{id: ev.Action, phase: ev.Phase, start: ev.Time.Add(-ev.Duration)}
}

// close moves j from running to over. It is nil for a job that is over already.
func (r *run) close(j *job, ev action.Event) *job {
	if !j.end.IsZero() {
		return nil
	}
	j.end, j.phase = ev.Time, cmp.Or(j.phase, ev.Phase)
	r.running = slices.DeleteFunc(r.running, func(other *job) bool { return other == j })
	r.over = append(r.over, j)
	return j
}

// A phaseTime is how long at least one job of a phase ran.
type phaseTime struct {
	phase string
	took  time.Duration
}

// phases tells where the time went, the most first.
func (r *run) phases() []phaseTime {
	var times []phaseTime
	reached := map[string]time.Time{} // up to when a phase's time is counted
	for _, j := range slices.SortedStableFunc(slices.Values(r.over), func(a, b *job) int { return a.start.Compare(b.start) }) {
		i := slices.IndexFunc(times, func(t phaseTime) bool { return t.phase == j.phase })
		if i < 0 {
			i, times = len(times), append(times, phaseTime{phase: j.phase})
		}
		from := j.start
		if reached[j.phase].After(from) {
			from = reached[j.phase]
		}
		if j.end.After(from) {
			times[i].took += j.end.Sub(from)
			reached[j.phase] = j.end
		}
	}
	slices.SortStableFunc(times, func(a, b phaseTime) int { return cmp.Compare(b.took, a.took) })
	return times
}

// hungriest is the job with the highest peak of memory, nil if none was measured.
func (r *run) hungriest() *job {
	var most *job
	for _, j := range r.over {
		if j.memory > 0 && (most == nil || j.memory > most.memory) {
			most = j
		}
	}
	return most
}
