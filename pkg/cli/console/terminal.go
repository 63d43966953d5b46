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
	out, err   sink
	verbose    int
	color      bool
	isArtifact func(string) bool
	size       func() (width, height int)
	now        func() time.Time

	run    run
	live   []line    // the lines at the bottom
	frame  string    // the same, as written
	width  int       // of the terminal when they were drawn
	drawn  time.Time // when they were drawn
	closed bool
}

func newTerminal(o Options) *terminal {
	return &terminal{
		out: sink{w: o.Out}, err: sink{w: o.Err}, verbose: o.Verbose, color: o.Getenv("NO_COLOR") == "",
		isArtifact: o.Artifacts, size: o.Size, now: o.Now,
	}
}

func (t *terminal) Event(ev action.Event) {
	j := t.run.add(ev)
	switch ev.Kind {
	case action.Output:
		t.erase()
		t.err.print(ended(ev.Text))
		t.draw("")
	case action.Step:
		t.draw(line{{dim, "· " + oneLine(ev.Action) + ": " + stepped(ev)}}.render(t.color) + "\n")
	case action.Skipped, action.Cached, action.Fetched:
		if t.verbose > 0 {
			t.draw(line{{dim, "· " + oneLine(ev.Action) + " " + quiet[ev.Kind]}}.render(t.color) + "\n")
			return
		}
		t.drawSoon()
	case action.Done, action.Failed:
		t.over(j)
	case action.Finished:
		t.finish()
	default:
		t.drawSoon()
	}
}

func (t *terminal) tick() {
	if !t.run.began.IsZero() && !t.run.finished {
		t.draw("")
	}
}

// drawSoon leaves the drawing to the next event or tick if the last frame is recent.
func (t *terminal) drawSoon() {
	if t.now().Sub(t.drawn) >= frameMinimum {
		t.draw("")
	}
}

func (t *terminal) over(j *job) {
	if j == nil {
		t.drawSoon()
		return
	}
	end := line{{green, "✓ "}, {normal, oneLine(j.id)}, {dim, j.reasons()}, {normal, "  " + duration(j.took())}}
	if j.failed {
		end = line{{red, "✗ " + oneLine(j.id) + " failed"}, {normal, j.failedAfter() + ": " + j.reason()}}
	}
	text := end.render(t.color) + "\n"
	if t.verbose > 0 {
		text += j.details()
	}
	t.draw(text)
}

func (t *terminal) finish() {
	t.erase()
	if t.run.err != "" {
		t.out.print(t.run.tally(t.run.took) + "\n")
		t.err.print(t.failures())
		return
	}
	width, _ := t.size()
	t.out.print(t.run.report(t.isArtifact, width))
	t.out.print(line{{bold, t.run.tally(t.run.took)}}.render(t.color) + "\n")
}

func (t *terminal) failures() string {
	return t.run.failures(line{{red, "error:"}}.render(t.color))
}

func (t *terminal) Close() error {
	if !t.closed && !t.run.began.IsZero() && !t.run.finished {
		t.erase()
		t.out.print("interrupted: " + t.run.tally(t.now().Sub(t.run.began)) + "\n")
		t.err.print(t.failures())
	}
	t.closed = true
	if t.out.err != nil {
		return t.out.err
	}
	return t.err.err
}

// draw replaces the live lines by scrolled, which is whole lines that stay, and by the live lines of now.
func (t *terminal) draw(scrolled string) {
	width, height := t.size()
	live := t.lines(width-1, height) // the last column stays free: some terminals wrap when it is filled
	var frame strings.Builder
	for _, l := range live {
		frame.WriteString(l.render(t.color) + eraseLine + "\n")
	}
	t.drawn = t.now()
	if scrolled == "" && width == t.width && frame.String() == t.frame {
		return
	}
	t.out.print(t.back(width) + strings.ReplaceAll(scrolled, "\n", eraseLine+"\n") + frame.String() + eraseDown)
	t.live, t.frame, t.width = live, frame.String(), width
}

// erase removes the live lines, one by one: if a screen is erased from its first cell, tmux keeps it in its history.
func (t *terminal) erase() {
	if len(t.live) == 0 {
		return
	}
	width, _ := t.size()
	rows := t.rows(width)
	t.out.print(toStart + up(rows) + strings.Repeat(eraseLine+"\n", rows) + up(rows))
	t.live, t.frame = nil, ""
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
		n += max(1, (l.cells()+width-1)/max(1, width))
	}
	return n
}

// lines returns the live lines of now, with at most width cells, and fewer than a screen of that height has.
func (t *terminal) lines(width, height int) []line {
	jobs := t.run.running
	space := min(maxJobs, height-3) // a line for the rest, one for the run, one for the cursor
	if len(jobs) > space {
		jobs = jobs[:max(0, space)]
	}
	longest := 0
	for _, j := range jobs {
		longest = max(longest, cells(oneLine(j.id)))
	}
	var lines []line
	for _, j := range jobs {
		lines = append(lines, t.jobLine(j, min(longest, max(16, width*2/5)), width))
	}
	if rest := len(t.run.running) - len(jobs); rest > 0 {
		lines = append(lines, line{{dim, fmt.Sprintf("  … and %d more", rest)}})
	}
	lines = append(lines, t.runLine(width))
	for i := range lines {
		lines[i] = lines[i].fit(max(0, width))
	}
	if excess := len(lines) - max(1, height-1); excess > 0 {
		lines = lines[excess:]
	}
	return lines
}

// jobLine returns "  compile linux/amd64  1m30s ━━━━━━──────  1,204 of 3,310 packages". What matters least is at the end,
// where lines are cut.
func (t *terminal) jobLine(j *job, name, width int) line {
	l := line{{normal, "  " + pad(truncate(oneLine(j.id), name), name)}, {dim, padLeft(clock(t.now().Sub(j.start)), 7)}}
	if j.total > 0 && width >= 60 {
		l = append(append(l, piece{normal, "  "}), bar(j.done, j.total, barCells)...)
	}
	if left := j.left(t.now()); left != "" {
		l = append(l, piece{bold, "  " + left})
	}
	if state := j.state(); state != "" {
		l = append(l, piece{normal, "  " + state})
	}
	return l
}

// runLine returns "━━━━━━━━━──  35 of 40 · 23 unchanged · 1m42s".
func (t *terminal) runLine(width int) line {
	r, took := &t.run, clock(t.now().Sub(t.run.began))
	if r.waiting != "" {
		return line{{bold, "waiting for " + r.waiting}, {dim, "  " + took}}
	}
	ready := int64(r.done + r.skipped + len(r.cached))
	parts := []string{count(ready) + " of " + count(int64(r.planned))}
	if r.planned == 0 {
		parts[0] = "planning"
	}
	if len(r.cached) > 0 {
		parts = append(parts, count(int64(len(r.cached)))+" from the cache")
	}
	if r.skipped > 0 {
		parts = append(parts, count(int64(r.skipped))+" unchanged")
	}
	if r.failed > 0 {
		parts = append(parts, count(int64(r.failed))+" failed")
	}
	l := line{{bold, strings.Join(parts, " · ")}, {dim, " · " + took}}
	if width < 60 {
		return l
	}
	return slices.Concat(bar(ready, int64(r.planned), barCells), line{{normal, "  "}}, l)
}
