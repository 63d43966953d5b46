package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

const (
	frameInterval = 200 * time.Millisecond // between frames when only clocks advance
	frameMinimum  = 50 * time.Millisecond  // between frames however fast events come
	maxJobs       = 8                      // live lines for jobs
	barCells      = 20
)

// These are all escape sequences besides colors.
const (
	toStart   = "\r"
	eraseLine = "\x1b[K" // from the cursor to the line's end
	eraseDown = "\x1b[J" // from the cursor to the screen's end
)

func up(rows int) string { return fmt.Sprintf("\x1b[%dA", rows) }

// terminal draws live lines about running jobs below lines that stay. Between two calls the cursor is at the start of the
// line below the live lines, so that anything else that is printed, even after a kill, starts on a line of its own.
type terminal struct {
	base
	live  []string  // the lines at the bottom
	width int       // of the terminal when they were drawn
	drawn time.Time // when they were drawn
}

func newTerminal(o Options) *terminal {
	return &terminal{base: base{Options: o, palette: o.Getenv("NO_COLOR") == ""}}
}

func (t *terminal) Event(ev action.Event) {
	j := t.run.add(ev)
	switch ev.Kind {
	case action.Output:
		t.erase()
		t.write(t.Err, withNewline(ev.Text))
		t.draw("")
	case action.Step:
		t.draw(t.paint(dim, "· "+stepped(ev)) + "\n")
	case action.Skipped, action.Hit, action.Fetched:
		if t.Verbose > 0 {
			t.draw(t.paint(dim, "· "+untouched(ev)) + "\n")
			return
		}
		t.drawSoon()
	case action.Done, action.Failed:
		t.end(j)
	case action.Finished:
		t.erase()
		width, _ := t.Size()
		t.finish(width)
	default:
		t.drawSoon()
	}
}

func (t *terminal) tick() {
	if t.open() {
		t.draw("")
	}
}

// drawSoon leaves the drawing to the next event or tick if the last frame is recent.
func (t *terminal) drawSoon() {
	if t.Now().Sub(t.drawn) >= frameMinimum {
		t.draw("")
	}
}

func (t *terminal) end(j *job) {
	if j == nil {
		t.drawSoon()
		return
	}
	end := t.paint(green, "✓ ") + oneLine(j.id) + t.paint(dim, j.reasons()) + "  " + duration(j.took())
	if j.failed {
		end = t.paint(red, "✗ "+oneLine(j.id)+" failed") + j.failedAfter() + ": " + j.reason()
	}
	end += "\n"
	if t.Verbose > 0 {
		end += j.details()
	}
	t.draw(end)
}

func (t *terminal) Close() error {
	t.erase()
	return t.close()
}

// draw replaces the live lines by scrolled, which is whole lines that stay, and by the live lines of now.
func (t *terminal) draw(scrolled string) {
	width, height := t.Size()
	live := t.lines(width-1, height) // the last column stays free: some terminals wrap when it is filled
	t.drawn = t.Now()
	if scrolled == "" && width == t.width && slices.Equal(live, t.live) {
		return
	}
	lines := scrolled + strings.Join(live, "\n") + "\n"
	t.write(t.Out, t.back(width)+strings.ReplaceAll(lines, "\n", eraseLine+"\n")+eraseDown)
	t.live, t.width = live, width
}

// erase removes the live lines, one by one: if a screen is erased from its first cell, tmux keeps it in its history.
func (t *terminal) erase() {
	if len(t.live) == 0 {
		return
	}
	width, _ := t.Size()
	t.write(t.Out, t.back(width)+strings.Repeat(eraseLine+"\n", t.rows(width))+up(t.rows(width)))
	t.live = nil
}

// back moves the cursor to where the live lines begin.
func (t *terminal) back(width int) string {
	if len(t.live) == 0 {
		return ""
	}
	return toStart + up(t.rows(width))
}

// rows returns how many rows of the terminal the live lines take. They are more than the lines if the terminal became
// narrower, because it wraps lines that no longer fit.
func (t *terminal) rows(width int) int {
	n := 0
	for _, l := range t.live {
		n += max(1, (cells(l)+width-1)/max(1, width))
	}
	return n
}

// lines returns the live lines of now, with at most width cells, and fewer than a screen of that height has.
func (t *terminal) lines(width, height int) []string {
	jobs := t.run.running
	jobs = jobs[:max(0, min(len(jobs), maxJobs, height-3))] // a line for the rest, one for the run, one for the cursor
	longest := 0
	for _, j := range jobs {
		longest = max(longest, cells(oneLine(j.id)))
	}
	var lines []string
	for _, j := range jobs {
		lines = append(lines, t.jobLine(j, min(longest, max(16, width*2/5)), width))
	}
	if rest := len(t.run.running) - len(jobs); rest > 0 {
		lines = append(lines, t.paint(dim, fmt.Sprintf("  … and %d more", rest)))
	}
	lines = append(lines, t.runLine(width))
	for i := range lines {
		lines[i] = truncate(lines[i], width)
	}
	return lines[max(0, len(lines)-max(1, height-1)):]
}

// jobLine returns "  compile linux/amd64  1m30s ━━━━━━──────  1,204 of 3,310 packages". What matters least is at the end,
// where lines are cut.
func (t *terminal) jobLine(j *job, name, width int) string {
	l := "  " + pad(truncate(oneLine(j.id), name), name) + t.paint(dim, padLeft(clock(t.Now().Sub(j.start)), 7))
	if j.total > 0 && width >= 60 {
		l += "  " + t.bar(j.done, j.total, barCells)
	}
	if left := j.left(t.Now()); left != "" {
		l += t.paint(bold, "  "+left)
	}
	if state := j.state(); state != "" {
		l += "  " + state
	}
	return l
}

// runLine returns "━━━━━━━━━──  35 of 40 · 23 unchanged · 1m42s".
func (t *terminal) runLine(width int) string {
	r, took := &t.run, clock(t.Now().Sub(t.run.began))
	if r.waiting != "" {
		return t.paint(bold, "waiting for "+r.waiting) + t.paint(dim, "  "+took)
	}
	ready := r.done + r.skipped + len(r.cached)
	text := count(int64(ready)) + " of " + count(int64(r.planned))
	if r.planned == 0 {
		text = "planning"
	}
	for _, part := range []part{{len(r.cached), "from the cache"}, {r.skipped, "unchanged"}, {r.failed, "failed"}} {
		if part.n > 0 {
			text += " · " + part.String()
		}
	}
	text = t.paint(bold, text) + t.paint(dim, " · "+took)
	if width < 60 {
		return text
	}
	return t.bar(int64(ready), int64(r.planned), barCells) + "  " + text
}
