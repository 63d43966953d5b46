package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// A run is the sum of its events. All views but JSON, which shows the events themselves, are views of it.
type run struct {
	began         time.Time       // of the first event
	last          time.Time       // of the latest
	took          time.Duration   // once it is finished
	waiting       string          // the holder of the lock, while another run holds it
	planned       int             // actions in the graph
	done          int             // actions
	skipped       int             // actions
	cached        map[string]bool // actions whose results a cache has
	failed        int             // jobs
	failedActions int             // actions of the failed jobs
	running       []*job          // in the order they started
	ended         []*job          // in the order they ended
	files         map[string]action.File
	finished      bool
	err           string // the error of a finished run
}

// A job is an action, or the actions that a batch makes together: a person waits for the batch.
type job struct {
	id     string
	phase  string
	why    string // why it runs
	by     string // what does the work
	start  time.Time
	end    time.Time
	memory int64 // peak, bytes; 0 if not measured
	files  []action.File

	done, total int64 // progress; total is 0 if unknown
	unit        action.Unit
	text        string // the latest of what is counted

	batch   int      // number of actions that the batch makes; 0 for a single action
	members []string // those that ended
	failed  bool
	failure string // the error

	output   []string // the last lines of what its tools printed
	cut      bool     // there were lines before these
	followed bool     // other lines were printed after these
}

func (j *job) took() time.Duration { return j.end.Sub(j.start) }

// add adds the next event, and returns the job that it ended, if any.
func (r *run) add(ev action.Event) (ended *job) {
	if r.finished { // a view may show one run after another
		*r = run{}
	}
	if r.began.IsZero() {
		r.began, r.files, r.cached = ev.Time, map[string]action.File{}, map[string]bool{}
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
	case action.Hit:
		r.cached[ev.Action] = true
	case action.Started:
		j := &job{id: ev.Action, phase: ev.Phase, why: oneLine(ev.Text), by: ev.By, start: ev.Time, batch: ev.Stale}
		r.running = append(r.running, j)
		r.noteLine(j)
	case action.Progress:
		j := r.jobOf(ev)
		j.done, j.total, j.unit, j.text, j.by = ev.Done, ev.Total, ev.Unit, oneLine(ev.Text), cmp.Or(ev.By, j.by)
	case action.Output:
		r.output(ev)
	case action.Step:
		r.noteLine(r.jobOf(ev))
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

// outputLines is how many lines of a job's output are kept.
const outputLines = 20

func (r *run) output(ev action.Event) {
	j := r.jobOf(ev)
	j.output = append(j.output, strings.Split(strings.TrimRight(ev.Text, "\n"), "\n")...)
	if excess := len(j.output) - outputLines; excess > 0 {
		j.output, j.cut = slices.Delete(j.output, 0, excess), true
	}
	r.noteLine(j)
}

// noteLine notes that a line about a job was printed, below the output of all other jobs. Nil is a line about several jobs.
func (r *run) noteLine(of *job) {
	for _, jobs := range [][]*job{r.running, r.ended} {
		for _, j := range jobs {
			j.followed = j.followed || j != of && len(j.output) > 0
		}
	}
}

// finish adds a Done event, of an action by itself or of one in a batch.
func (r *run) finish(ev action.Event) (ended *job) {
	j := r.jobOf(ev)
	r.done++
	delete(r.cached, ev.Action) // the cache has lost it
	j.memory = max(j.memory, ev.Memory)
	j.by = cmp.Or(ev.By, j.by)
	j.files = append(j.files, ev.Files...)
	if j.id != ev.Action {
		if j.members = append(j.members, ev.Action); len(j.members) < j.batch {
			return nil
		}
	}
	return r.close(j, ev)
}

// fail adds a Failed event, of an action by itself or of a batch.
func (r *run) fail(ev action.Event) (ended *job) {
	j := r.jobOf(ev)
	r.failed++
	r.failedActions += max(1, j.batch-len(j.members))
	j.failed, j.failure, j.by = true, ev.Text, cmp.Or(ev.By, j.by)
	return r.close(j, ev)
}

// jobOf returns the job that an event is about: the action's, or that of its batch. If there was no event of its start, it
// returns a new job.
func (r *run) jobOf(ev action.Event) *job {
	id := cmp.Or(ev.Batch, ev.Action)
	if i := slices.IndexFunc(r.running, func(j *job) bool { return j.id == id }); i >= 0 {
		return r.running[i]
	}
	for _, j := range slices.Backward(r.ended) {
		if j.id == id && j.batch > 0 {
			return j
		}
	}
	return &job{id: ev.Action, phase: ev.Phase, start: ev.Time.Add(-ev.Duration)}
}

// close moves j from running to ended, and returns it. It returns nil if j had ended already.
func (r *run) close(j *job, ev action.Event) *job {
	if !j.end.IsZero() {
		return nil
	}
	r.noteLine(j)
	j.end, j.phase = ev.Time, cmp.Or(j.phase, ev.Phase)
	r.running = slices.DeleteFunc(r.running, func(other *job) bool { return other == j })
	r.ended = append(r.ended, j)
	return j
}

// A phaseTime is how long at least one job of a phase ran.
type phaseTime struct {
	phase string
	took  time.Duration
}

// phases returns the time that each phase took, longest first.
func (r *run) phases() []phaseTime {
	var times []phaseTime
	reached := map[string]time.Time{} // the end of what is counted of each phase
	for _, j := range slices.SortedStableFunc(slices.Values(r.ended), func(a, b *job) int { return a.start.Compare(b.start) }) {
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
