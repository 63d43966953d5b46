package action

import (
	"sync"
	"time"

	"slipway.build/pkg/mechanism/tail"
)

// An EventKind says what an Event reports.
type EventKind string

const (
	Waiting  EventKind = "waiting"  // another run holds the tree's lock; Text names it
	Planned  EventKind = "planned"  // the graph is known; Total is its number of actions
	Started  EventKind = "started"  // an action or a batch runs; Reasons say why it is not skipped
	Progress EventKind = "progress" // Done of Total (0: unknown) of a Unit; Text names the latest
	Output   EventKind = "output"   // Text is output of the tool that runs, for the user, as the tool printed it
	Step     EventKind = "step"     // a part of an action is done: Text names it, Duration is how long it took
	Skipped  EventKind = "skipped"  // key and outputs are unchanged
	Hit      EventKind = "cached"   // a cache has the result; it is fetched when it is needed
	Fetched  EventKind = "fetched"  // outputs from a cache have their final names
	Done     EventKind = "done"     // the outputs have their final names
	Failed   EventKind = "failed"   // Text is the error
	Finished EventKind = "finished" // the run is over; Text is the error, if any
)

// A Unit is what progress counts.
type Unit string

const (
	Bytes    Unit = "bytes"
	Packages Unit = "packages"
	Steps    Unit = "steps" // of another build system's plan
)

// An Event is one thing that happened in a run. The stream of events is all that a run reports: a terminal view, plain
// lines and JSON lines are three views of it. What a program needs has a field of its own; Text is for people.
type Event struct {
	Time     time.Time     `json:"time"`
	Kind     EventKind     `json:"kind"`
	Action   string        `json:"action,omitempty"`   // Action.ID; Batch.ID for Started, Progress, Output, Step and Failed of a batch
	Batch    string        `json:"batch,omitempty"`    // with Done: Batch.ID, if the action was made in a batch
	Phase    string        `json:"phase,omitempty"`    // Action.Phase
	By       string        `json:"by,omitempty"`       // what does the work: "go build, pid 4711", a container, a Bazel invocation
	Text     string        `json:"text,omitempty"`     // with Started: the reasons in words
	Reasons  []Reason      `json:"reasons,omitempty"`  // with Started: why it runs; for a batch, the different reasons of its actions
	Stale    int           `json:"stale,omitempty"`    // with Started of a batch: how many of its actions run
	Members  int           `json:"members,omitempty"`  // with Started of a batch: how many actions it has
	Done     int64         `json:"done,omitempty"`     // with Progress
	Total    int64         `json:"total,omitempty"`    // with Progress and Planned
	Unit     Unit          `json:"unit,omitempty"`     // with Progress: what Done and Total count; empty if that has no name
	Duration time.Duration `json:"duration,omitempty"` // with Step, Done, Failed and Finished; nanoseconds
	// with Done: peak resident memory of the processes an action started, bytes; 0 if not measured; for an action in a batch, that of the
	// batch
	Memory int64  `json:"memory,omitempty"`
	Origin Origin `json:"origin,omitempty"` // with Done, Skipped and Hit: of the outputs
	Files  []File `json:"files,omitempty"`  // with Done, Skipped and Hit: the outputs; with Fetched: those that were
}

// A Report receives events of a running action. It adds which action it is, and may be called from several goroutines.
type Report func(Event)

// Progress reports what is done now.
func (r Report) Progress(text string) { r(Event{Kind: Progress, Text: text}) }

// Count reports that done of total (0: unknown) units are done; text names the latest.
func (r Report) Count(unit Unit, done, total int64, text string) {
	r(Event{Kind: Progress, Unit: unit, Done: done, Total: total, Text: text})
}

// Output reports a line of a tool's output.
func (r Report) Output(line string) { r(Event{Kind: Output, Text: line}) }

// Step reports that a part of the work is done, and how long it took.
func (r Report) Step(text string, took time.Duration) {
	r(Event{Kind: Step, Text: text, Duration: took})
}

// SetWorker sets what does the work from now on, for all events of the action: "go build, pid 4711".
func (r Report) SetWorker(name string) { r(Event{By: name}) }

// Memory reports the peak resident memory, in bytes, of the processes that the action started. The highest of several reports counts.
func (r Report) Memory(peak int64) { r(Event{Memory: peak}) }

// A File is an output of an action.
type File struct {
	Path   string `json:"path"` // relative to the graph's root, slash-separated
	Size   int64  `json:"size"` // bytes; for a directory, of all files in it
	SHA256 string `json:"sha256"`
}

// An emitter hands events on, one at a time and in order.
type emitter struct {
	mu     sync.Mutex
	to     func(Event)     // nil if nobody listens
	over   map[string]bool // actions that were reported as done, skipped or cached
	closed bool
}

func (e *emitter) emit(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.to == nil {
		return
	}
	switch ev.Kind {
	case Skipped, Hit:
		if e.over[ev.Action] { // it is judged again, since other results are lost
			return
		}
		e.end(ev.Action)
	case Done:
		e.end(ev.Action)
	}
	ev.Time = time.Now()
	ev.Text = tail.Redact(ev.Text)
	e.to(ev)
}

func (e *emitter) end(id string) {
	if e.over == nil {
		e.over = map[string]bool{}
	}
	e.over[id] = true
}

// close drops events that goroutines which outlive their action emit after the run.
func (e *emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}
