// Package action runs a graph of actions, each of which makes files from files. Actions run side by side within a budget
// of processors and memory, each at most once, and are skipped if their inputs and outputs are as they were.
//
// # When an action runs
//
// An action's key is the SHA-256 of its ID, its recipe, the names of its outputs, and the path and content
// of every input. An action that finished leaves a record of its key and of its outputs' contents; the next
// run skips it if the key is the same and the outputs are still what the record says. So
//
//   - touching a file, or checking out another commit and coming back, runs nothing;
//   - an action that makes the same bytes as before ends the rebuild there: the actions downstream have their old keys;
//   - an output that was edited, cut short or removed is made again.
//
// The content of a file is its bytes and whether its owner may execute it. The content of a symbolic link is its target
// and, for inputs, the file it leads to, if any. The content of a directory is the names and contents of everything below
// it. Links to directories are not followed. Times, owners and the other mode bits do not count.
//
// If an input is edited while its action runs, it is unknown which version the action read. The run reports that and
// carries on, and the next run makes that action's outputs again.
//
// # Why a no-op is fast
//
// Contents are remembered by package statcache. The runner hashes outputs before it renames them into place, while nobody else writes to
// them, so it neither reads them again nor waits until their times are old enough. An edit is noticed even if the file's modification
// time is put back, because its change time moves on.
//
// # Results from a cache
//
// A [Cache] keeps results by the keys of their actions. A run with a cache looks up every stale action, and does not run it after a hit:
// the result has the digests of its outputs, from which the keys of the actions that read them follow. The bytes are fetched only for an
// action that runs, or if the caller wants them. So after a run, outputs may still be remote. Their record says so, and later runs need no
// cache for it. If their bytes are lost when they are needed, their actions run. Nothing else may keep the name of a remote output.
//
// A key in a cache does not depend on the action's ID, and has the names that [Graph.Folders] gives to folders.
//
// The runner checks that a result has the action's outputs, and nothing outside of them. The implementation of the cache checks who has
// signed a result, and the digests of bytes.
//
// Each result has an [Origin]. It says whether a cache had a part in it, and so who may sign it.
//
// # What an interruption leaves behind
//
// An action writes to temporary names (Task.Path) on the file system of its outputs. After it has returned without an
// error, they are renamed into place, and then it is recorded. A run can be killed at any moment: nothing half-written
// has its final name, and another run of the same graph ends in the same bytes. When an action fails or the user
// interrupts, no other action starts, those that run finish or notice the end of their context, and finished work is kept.
//
// One run at a time works in a tree. A second one waits for the lock and names its holder.
//
// # The state folder
//
//	lock                the lock, holding the process ID of its holder
//	stat                remembered contents of files
//	actions/<id>.json   an action's record; <id> is the SHA-256 of the action's ID
//	actions/<id>.from   its recipe and inputs at that time, read only to explain why an action runs
//	actions/<id>.result the result in a cache, if the record is of one
//	actions/<id>.batch  the memory that a batch needed the last time it ran
//	tmp/                files that running actions write; emptied when a run starts
//
// Whenever it is deleted, everything runs once more.
//
// # Reports
//
// A run reports only through its stream of events. What a program needs of an event is in fields: why an action runs is a
// [Reason], what its progress counts is a [Unit]. No reader needs to parse the text that goes with them.
//
// # What must never be in here
//
// Anything that knows what an action does: no Kubernetes, no Go command, no git, no containers. Nothing here prints.
package action
