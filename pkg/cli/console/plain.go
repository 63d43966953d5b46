package console

import (
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// progressInterval is the time between lines about a long job. It is long enough for a log that people read from top to bottom, and
// short enough for CI systems that end silent jobs.
const progressInterval = 30 * time.Second

// plain writes lines and never changes them.
type plain struct {
	base
	lastProgress time.Time // of the last line about a long job
}

func newPlain(o Options) *plain { return &plain{base: base{Options: o}} }

func (p *plain) Event(ev action.Event) {
	j := p.run.add(ev)
	switch ev.Kind {
	case action.Waiting:
		p.print("waiting for " + p.run.waiting)
	case action.Started:
		p.print(p.run.running[len(p.run.running)-1].title())
	case action.Progress:
		p.printProgress(ev.Time)
	case action.Output:
		p.write(p.Err, withNewline(ev.Text))
	case action.Step:
		p.print(stepped(ev))
	case action.Skipped, action.Hit, action.Fetched:
		if p.Verbose > 0 {
			p.print(untouched(ev))
		}
	case action.Done, action.Failed:
		p.end(j)
	case action.Finished:
		p.finish(0)
	}
}

// tick writes a line about long jobs even if no event comes: a link of ten minutes must not look like a hang.
func (p *plain) tick() {
	if !p.run.finished {
		p.printProgress(p.Now())
	}
}

// printProgress writes the progress of jobs that have run for long, unless it did so lately.
func (p *plain) printProgress(now time.Time) {
	if now.Sub(p.lastProgress) < progressInterval {
		return
	}
	for _, j := range p.run.running {
		took := now.Sub(j.start)
		if took < progressInterval {
			continue
		}
		parts := slices.DeleteFunc([]string{j.state(), clock(took), j.left(now)}, func(part string) bool { return part == "" })
		p.print(oneLine(j.id) + ": " + strings.Join(parts, ", "))
		p.lastProgress = now
		p.run.noteLine(nil)
	}
}

func (p *plain) end(j *job) {
	if j == nil {
		return
	}
	end := " done in " + duration(j.took())
	if j.failed {
		end = " FAILED" + j.failedAfter() + ": " + j.reason()
	}
	p.print(oneLine(j.id) + end)
	if p.Verbose > 0 {
		p.write(p.Out, j.details())
	}
}

func (p *plain) Close() error { return p.close() }

func (p *plain) print(line string) { p.write(p.Out, line+"\n") }
