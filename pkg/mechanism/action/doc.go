// Package action runs a graph of actions, each of which makes files from files: side by side within a
// budget of processors and memory, each once, and none whose inputs and outputs are as they were.
//
//	g := &action.Graph{Root: "/src/tree", State: "_output/.slipway", Actions: actions}
//	err := g.Run(ctx, action.Options{Budget: action.Budget{CPU: 8, Memory: 16 << 30}, Events: print})
//
// # When an action runs
//
// An action's key is the SHA-256 of its ID, its recipe, the names of its outputs, and the path and content
// of every input. An action that finished leaves a record of its key and of its outputs' contents; the next
// run skips it if the key is the same and the outputs are still what the record says. So
//
//   - touching a file, or checking out another commit and coming back, runs nothing;
//   - an action that makes the same bytes as before stops the rebuild there: what is downstream has its old key;
//   - an output that somebody edited, cut short or removed is made again.
//
// What counts as content: of a file, its bytes and whether its owner may execute it; of a symbolic link, its
// target, and in inputs also the file it leads to, if it leads to one; of a directory, the names and contents of
// everything below it. Links to directories are not followed. Times, owners and the other mode bits do not count.
//
// If an input is edited while its action runs, nobody can say what the action saw. The run says so and
// carries on, and the next run makes that action's outputs again.
//
// # Why a no-op is fast
//
// Contents are remembered by path, size, times, inode and mode, in one file. An entry is believed only if
// the file's times are older than the moment it was read by more than a clock's tick, as git does: a file can
// be edited twice within one tick, and the second edit leaves the same times. For the same reason the runner
// waits a tick before it reads an output it has just set into place; otherwise the next run would read it again.
// Putting a file's modification time back after an edit fools nobody, because its change time moves on.
//
// # What an interruption leaves behind
//
// An action writes to temporary names (Task.Path) on the file system of its outputs. Only when it has returned
// without an error are they renamed into place, and only then is it recorded. A run can be killed at any moment:
// nothing half-written has its final name, and the same graph run again ends in the same bytes. When an action
// fails or the user interrupts, no other starts, those that run finish or notice their context, and what they
// finished is kept.
//
// One run at a time works in a tree. A second one waits for the lock and says for whom.
//
// # The state folder
//
//	lock                the lock, holding the process ID of its holder
//	stat                remembered contents of files
//	actions/<id>.json   an action's record; <id> is the SHA-256 of the action's ID
//	actions/<id>.from   its recipe and inputs at that time, read only to say why an action runs
//	actions/<id>.batch  what a batch needed the last time it ran
//	tmp/                what running actions write; emptied when a run starts
//
// It can be deleted at any time; then everything runs once.
//
// # What must never be in here
//
// Anything that knows what an action does: no Kubernetes, no Go command, no git, no containers; and nothing
// that prints. The stream of events is all that a run tells.
package action
