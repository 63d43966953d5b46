// Package console shows a run's stream of events to people and programs.
//
// Every view is made from [action.Event] values and nothing else, so a terminal, a CI log and a reader of JSON never
// contradict each other.
//
// # Views
//
//   - [Terminal]: finished work scrolls up. Below it, a few live lines show what runs, for how long, and its progress; the
//     last one shows the progress of the whole run.
//   - [Plain]: a calm log for CI and pipes. It has a line when something starts, one when it ends, and at most every
//     30 seconds one about what takes long. Skipped actions are counted, not listed.
//   - [JSON]: the events themselves, one a line.
//   - [Timeline]: a picture (SVG) of a run that has ended. It shows which action waited for which.
//
// Actions that one process makes (an action.Batch) are one line, because a person waits for the process.
//
// # Where text goes
//
// Progress and the closing report go to Options.Out. The tools' output (compile errors, warnings) goes to Options.Err when
// it comes, byte for byte. So does the run's error, as the very last thing; the caller must not print it again. The JSON
// view writes to Out alone, because its events carry all of that.
//
// # The closing report
//
// A run that succeeded ends with the artifacts (path, size, SHA-256; also when nothing had to be done), the time of each
// phase, the peak memory if it was measured, and the total. A phase's time is the time during which at least one of its
// actions ran, so eight compiles side by side for a minute take a minute.
//
// A run that failed ends with its error and shows no artifacts, because those on disk may be from before. Other actions may
// have printed lines since the failed one printed why; then its last lines of output are repeated above the error.
//
// # On a terminal
//
// The live lines are redrawn in place, in one write per frame, and the cursor rests at the start of the line below them. It
// is never hidden, so even kill -9 leaves neither a terminal that needs a reset, nor a prompt in the middle of a line. Lines
// are cut to the terminal's width by cells, not bytes. NO_COLOR turns colors off (nothing is shown by color alone).
// TERM=dumb, CI or output that is not a terminal select [Plain].
//
// # What must never be in here
//
// Decisions. No view knows what an action does, starts or stops one, reads a file, or parses an event's text; nothing here
// is particular to Kubernetes. What a view needs to know must be a field of the event.
package console
