package console

import (
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// calm is the time between lines about a long job. It is long enough for a log that people read from top to bottom, and
// short enough for CI systems that end silent jobs.
const calm = 30 * time.Second

// plain writes lines and never changes them.
type plain struct {
	out, err   sink
	verbose    int
	isArtifact func(string) bool
	now        func() time.Time

	run    run
	spoken time.Time // of the last line about a long job
	closed bool
}

func newPlain(o Options) *plain {
	return &plain{out: sink{w: o.Out}, err: sink{w: o.Err}, verbose: o.Verbose, isArtifact: o.Artifacts, now: o.Now}
}

// quiet says what happened to an action without any work on it.
var quiet = map[action.EventKind]string{action.Skipped: "unchanged", action.Cached: "known by the cache", action.Fetched: "fetched"}

func (p *plain) Event(ev action.Event) {
	j := p.run.add(ev)
	switch ev.Kind {
	case action.Waiting:
		p.say("waiting for " + p.run.waiting)
	case action.Started:
		p.say(p.run.running[len(p.run.running)-1].title())
	case action.Progress:
		p.speak(ev.Time)
	case action.Output:
		p.err.print(ended(ev.Text))
	case action.Step:
		p.say(oneLine(ev.Action) + ": " + stepped(ev))
	case action.Skipped, action.Cached, action.Fetched:
		if p.verbose > 0 {
			p.say(oneLine(ev.Action) + " " + quiet[ev.Kind])
		}
	case action.Done, action.Failed:
		p.over(j)
	case action.Finished:
		p.finish()
	}
}

// tick writes a line about long jobs even if no event comes: a link of ten minutes must not look like a hang.
func (p *plain) tick() {
	if !p.run.finished {
		p.speak(p.now())
	}
}

// speak writes the progress of jobs that have run for long, if it did not do so lately.
func (p *plain) speak(now time.Time) {
	if now.Sub(p.spoken) < calm {
		return
	}
	for _, j := range p.run.running {
		took := now.Sub(j.start)
		if took < calm {
			continue
		}
		parts := slices.DeleteFunc([]string{j.state(), clock(took), j.left(now)}, func(part string) bool { return part == "" })
		p.say(oneLine(j.id) + ": " + strings.Join(parts, ", "))
		p.spoken = now
		p.run.bury(nil)
	}
}

func (p *plain) over(j *job) {
	switch {
	case j == nil:
		return
	case j.failed:
		p.say(oneLine(j.id) + " FAILED" + j.failedAfter() + ": " + j.reason())
	default:
		p.say(oneLine(j.id) + " done in " + duration(j.took()))
	}
	if p.verbose > 0 {
		p.out.print(j.details())
	}
}

func (p *plain) finish() {
	if p.run.err != "" {
		p.say(p.run.tally(p.run.took))
		p.err.print(p.run.failures("error:"))
		return
	}
	p.out.print(p.run.report(p.isArtifact, 0))
	p.say(p.run.tally(p.run.took))
}

func (p *plain) Close() error {
	if !p.closed && !p.run.began.IsZero() && !p.run.finished {
		p.say("interrupted: " + p.run.tally(p.now().Sub(p.run.began)))
		p.err.print(p.run.failures("error:"))
	}
	p.closed = true
	if p.out.err != nil {
		return p.out.err
	}
	return p.err.err
}

func (p *plain) say(line string) { p.out.print(line + "\n") }
