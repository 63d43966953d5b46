// Package console shows a run's stream of events to whoever watches it.
//
// The stream is all there is: every view is a fold over [action.Event] values and nothing else, so what a
// person sees on a terminal, what a CI log keeps and what a tool reads from JSON can't contradict each other.
//
//	view := console.New(console.Options{Artifacts: isReleaseTar})
//	err := graph.Run(ctx, …) // with view.Event to take the events
//	view.Close() // also, and above all, when the run was interrupted
//
// # Views
//
//   - [Terminal]: finished work scrolls up; below it a few live lines tell what runs, for how long and how far
//     it is, and a last one tells how far the whole run is.
//   - [Plain]: a calm log for CI and pipes. A line when something starts, one when it ends, and at most every
//     30 seconds one about what takes long. Skipped actions are counted, not listed.
//   - [JSON]: the events themselves, one a line; [ReadJSON] reads them back.
//   - [Timeline]: a picture (SVG) of a run that is over, for finding out what waited for what.
//
// Actions that are made by one process (an action.Batch) are one line: a person waits for the process.
//
// # Where text goes
//
// Progress and the closing report go to Options.Out. What the tools print (compile errors, warnings) goes to
// Options.Err, byte for byte and once, and so does the run's error, as the very last thing: the caller must
// not print it again. The JSON view writes to Out alone, since its events carry all of that.
//
// # The closing report
//
// A run that went well ends with the artifacts (path, size, SHA-256; also when nothing had to be done), where
// the time went, the peak memory if it was measured, and the total. A phase's time is the time during which
// at least one of its actions ran, so eight compiles side by side for a minute are a minute. A run that failed
// ends with its error and shows no artifacts: those on disk may be from before.
//
// # On a terminal
//
// The live lines are redrawn in place, in one write per frame, and the cursor rests at the start of the line
// below them. It is never hidden: not even kill -9 leaves behind a terminal that needs a reset, or a prompt in
// the middle of a line. Lines are cut to the terminal's width by cells, not bytes. NO_COLOR turns colors off
// (nothing is told by color alone); TERM=dumb, CI or output that is not a terminal select [Plain].
//
// # What must never be in here
//
// Decisions. No view knows what an action does, starts or stops one, or reads a file; nothing here is
// particular to Kubernetes. What a view needs to know has to be in the event.
package console
