package action

import "time"

// An EventKind says what an Event tells.
type EventKind string

const (
	Waiting  EventKind = "waiting"  // another run holds the tree's lock; Text names it
	Planned  EventKind = "planned"  // the graph is known; Total is its number of actions
	Started  EventKind = "started"  // an action (or a batch) runs; Text says why it was not skipped
	Progress EventKind = "progress" // Done of Total (0: unknown) packages, bytes, … so far; Text names the unit or the latest
	Output   EventKind = "output"   // Text is output of the tool that runs, for the user, as the tool printed it
	Step     EventKind = "step"     // a part of what runs is done: Text names it, Duration is how long it took
	Skipped  EventKind = "skipped"  // key and outputs are unchanged
	Done     EventKind = "done"     // the outputs stand under their final names
	Failed   EventKind = "failed"   // Text is the error
	Finished EventKind = "finished" // the run is over; Text is the error, if any
)

// An Event is one thing that happened in a run. The stream of events is all that a run reports:
// a terminal view, plain lines and JSON lines are three views of it.
type Event struct {
	Time     time.Time     `json:"time"`
	Kind     EventKind     `json:"kind"`
	Action   string        `json:"action,omitempty"`   // Action.ID; Batch.ID for Started, Progress, Output, Step and Failed of a batch
	Batch    string        `json:"batch,omitempty"`    // with Done: Batch.ID, if the action was made in a batch
	Phase    string        `json:"phase,omitempty"`    // Action.Phase
	By       string        `json:"by,omitempty"`       // what did the work: "go build, pid 4711", a container, a Bazel invocation
	Text     string        `json:"text,omitempty"`     //
	Done     int64         `json:"done,omitempty"`     // with Progress
	Total    int64         `json:"total,omitempty"`    // with Progress and Planned
	Duration time.Duration `json:"duration,omitempty"` // with Step, Done, Failed and Finished; nanoseconds
	Memory   int64         `json:"memory,omitempty"`   // with Done: peak resident memory of the processes an action started, bytes; 0 if not measured; for an action in a batch, that of the batch
	Files    []File        `json:"files,omitempty"`    // with Done and Skipped: the outputs
}

// A File is an output of an action.
type File struct {
	Path   string `json:"path"` // relative to the graph's root, slash-separated
	Size   int64  `json:"size"` // bytes; for a directory, of all files in it
	SHA256 string `json:"sha256"`
}
