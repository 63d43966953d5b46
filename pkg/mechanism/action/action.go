package action

import "context"

// An Action makes files from files. Its Recipe and the contents of its Inputs alone decide what it makes; if both are as
// they were and the outputs are intact, it is skipped.
type Action struct {
	ID     string   // unique in its graph and the same from run to run: "compile linux/amd64 kubectl"
	Phase  string   // the kind of work, for reports: "compile", "image", "package"
	Recipe []string // everything besides inputs that decides the outputs' bytes, best as field=value: flags, stamps, versions of tools

	// Inputs and Outputs are slash-separated paths relative to the graph's root (or absolute, for inputs outside of it).
	// One that ends in "/" is a directory with everything below it. An action waits for those whose outputs are, hold or
	// lie in its inputs.
	Inputs  []string
	Outputs []string

	// Local says that the result is good only in this tree, on this machine. No cache keeps it, nor that of an action with inputs outside
	// of the root.
	Local bool

	Cost  Cost
	Run   func(ctx context.Context, t *Task) error // nil if Batch is set
	Batch *Batch                                   // runs this action together with others
}

// A Batch runs several actions together, because one process makes all their outputs. Each action has a key and a record
// of its own; Run gets those that are stale.
type Batch struct {
	ID   string
	Cost Cost

	// Lane, if not empty, names batches that run one after another, in the order of the graph, because what one leaves to the next
	// saves work. Other actions run beside them.
	Lane string

	Run func(ctx context.Context, t *Task, stale []*Action) error

	// Ready, if not nil, looks for what Run needs on the machine. It is called before anything runs, if the batch waits for no
	// other action and has something to do. Its error ends the run before any work is done in vain.
	Ready func(ctx context.Context) error

	// Commands, if not nil, returns shell command lines that do what Run would do. They are for people.
	Commands func(stale []*Action) []string
}

// Cost is what an action needs while it runs. Actions run side by side as long as their sums are within the Budget; an
// action that exceeds it by itself runs alone.
type Cost struct {
	CPU    int   // busy threads; 0 counts as 1
	Memory int64 // bytes
}

// A Budget bounds what runs side by side.
type Budget struct {
	CPU    int
	Memory int64 // bytes; 0 is no bound
}
