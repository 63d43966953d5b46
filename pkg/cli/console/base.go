package console

import (
	"io"
	"strings"

	"slipway.build/pkg/mechanism/action"
)

// A base is what Plain and Terminal share: where they write, the run, and its end.
type base struct {
	Options
	palette
	run    run
	closed bool
	err    error // the first one of writing
}

func (b *base) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); b.err == nil {
		b.err = err
	}
}

// finish shows the end of a run. A table wider than width is stacked.
func (b *base) finish(width int) {
	tally := b.run.tally(b.run.took)
	if b.run.err != "" {
		b.write(b.Out, tally+"\n")
		b.write(b.Err, b.run.failures(b.paint(red, "error:")))
		return
	}
	b.write(b.Out, b.run.report(b.Artifacts, width)+b.paint(bold, tally)+"\n")
}

// close shows a run that has not ended as interrupted.
func (b *base) close() error {
	if !b.closed && b.open() {
		b.write(b.Out, "interrupted: "+b.run.tally(b.Now().Sub(b.run.began))+"\n")
		b.write(b.Err, b.run.failures(b.paint(red, "error:")))
	}
	b.closed = true
	return b.err
}

// open reports whether a run has begun and not ended.
func (b *base) open() bool { return !b.run.began.IsZero() && !b.run.finished }

// stepped returns a line about a part of a job that is done: "compile: sources sent, in 212ms".
func stepped(ev action.Event) string {
	return oneLine(ev.Action) + ": " + oneLine(ev.Text) + ", in " + duration(ev.Duration)
}

// untouched returns a line about an action without any work on it.
func untouched(ev action.Event) string {
	what := map[action.EventKind]string{action.Skipped: "unchanged", action.Hit: "known by the cache", action.Fetched: "fetched"}
	return oneLine(ev.Action) + " " + what[ev.Kind]
}

// withNewline returns text with a newline at its end.
func withNewline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
