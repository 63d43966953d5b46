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
	base
	spoken time.Time // of the last line about a long job
}

func newPlain(o Options) *plain { return &plain{base: base{Options: o}} }

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
		p.write(p.Err, ended(ev.Text))
	case action.Step:
		p.say(stepped(ev))
	case action.Skipped, action.Cached, action.Fetched:
		if p.Verbose > 0 {
			p.say(untouched(ev))
		}
	case action.Done, action.Failed:
		p.over(j)
	case action.Finished:
		p.finish(0)
	}
}

// tick writes a line about long jobs even if no event comes: a link of ten minutes must not look like a hang.
func (p *plain) tick() {
	if !p.run.finished {
		p.speak(p.Now())
	}
}

// speak writes the progress of jobs that have run for long, unless it did so lately.
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
	if j == nil {
		return
	}
	end := " done in " + duration(j.took())
	if j.failed {
		end = " FAILED" + j.failedAfter() + ": " + j.reason()
	}
	p.say(oneLine(j.id) + end)
	if p.Verbose > 0 {
		p.write(p.Out, j.details())
	}
}

func (p *plain) Close() error { return p.close() }

func (p *plain) say(line string) { p.write(p.Out, line+"\n") }
