package console

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/action"
)

// Timeline writes an SVG picture of a run's events: a bar for every action or batch that ran, from start to end, by phase.
// The picture needs no script, font or network. It follows the reader's light or dark preference, shows nothing by color
// alone, and pointing at a bar shows its details. A run that was cut short is drawn up to its last event. If there are
// several runs, the last one is drawn.
func Timeline(w io.Writer, events []action.Event) error {
	var r run
	for _, ev := range events {
		r.add(ev)
	}
	return newChart(&r).draw(w)
}

// Measures of the picture, in pixels.
const (
	chartWidth  = 1200.0
	margin      = 24.0
	headHeight  = 84.0 // title, subtitle, times
	laneHeight  = 26.0
	barHeight   = 20.0
	groupGap    = 10.0
	letterWidth = 6.8 // of one cell of 12 px text, on the wide side
	barMinimum  = 2.0
)

// A chart is the picture as data.
type chart struct {
	title, subtitle string
	left, right     float64 // of the area of the bars
	height          float64
	ticks           []tick
	groups          []group
}

// A tick is a vertical line at a time.
type tick struct {
	x    float64
	text string
}

// A group holds the bars of a phase.
type group struct {
	phase     string
	y, height float64
	boxes     []box
}

// A box is a bar and its label, which is in it or beside it.
type box struct {
	job         *job
	x, y, width float64
	label       string
	labelX      float64
	anchor      string // of the label: SVG's text-anchor
	inside      bool
}

func newChart(r *run) *chart {
	jobs := slices.Concat(r.ended, r.running)
	took := r.took
	if !r.finished {
		took = r.last.Sub(r.began)
	}
	slices.SortStableFunc(jobs, func(a, b *job) int { return a.start.Compare(b.start) })

	c := &chart{title: "Timeline: " + r.tally(took), left: margin, right: chartWidth - margin}
	c.subtitle = "Nothing ran."
	if len(jobs) > 0 {
		c.subtitle = subtitle(r)
	}
	for _, j := range jobs {
		c.left = max(c.left, 2*margin+textWidth(oneLine(j.phase)))
	}
	length := max(took, time.Millisecond)
	for _, j := range jobs { // a clock that is set back must not draw outside of the picture
		length = max(length, endOf(j, r).Sub(r.began))
	}
	xOf := func(at time.Time) float64 {
		return c.left + (c.right-c.left)*max(0, float64(at.Sub(r.began))/float64(length))
	}
	step := tickStep(length)
	for at := time.Duration(0); at <= length; at += step {
		c.ticks = append(c.ticks, tick{xOf(r.began.Add(at)), tickText(at)})
	}
	y := headHeight
	for _, phase := range phasesOf(jobs) {
		g := group{phase: phase, y: y}
		for _, j := range jobs {
			if j.phase != phase {
				continue
			}
			x := xOf(j.start)
			b := box{job: j, x: x, width: max(barMinimum, xOf(endOf(j, r))-x), label: label(j, r)}
			b.place(c.left, c.right)
			g.boxes = append(g.boxes, b)
		}
		g.height = float64(g.pack()) * laneHeight
		c.groups = append(c.groups, g)
		y += g.height + groupGap
	}
	c.height = y + margin
	return c
}

// endOf returns when j ended, or the time of the last event.
func endOf(j *job, r *run) time.Time {
	if j.end.IsZero() {
		return r.last
	}
	return j.end
}

func phasesOf(jobs []*job) []string {
	var phases []string
	for _, j := range jobs {
		if !slices.Contains(phases, j.phase) {
			phases = append(phases, j.phase)
		}
	}
	return phases
}

func subtitle(r *run) string {
	parts := r.times()
	if peak := r.peak(); peak != "" {
		parts = append(parts, peak)
	}
	return truncate(strings.Join(parts, " · "), 169) // what fits between the margins
}

// label names j without its phase, whose name is beside the group already.
func label(j *job, r *run) string {
	name := truncate(cmp.Or(strings.TrimPrefix(oneLine(j.id), oneLine(j.phase)+" "), oneLine(j.id)), 40)
	took := duration(endOf(j, r).Sub(j.start))
	switch {
	case j.failed:
		return "✗ " + name + " failed" + j.failedAfter()
	case j.end.IsZero():
		return name + " not finished after " + took
	}
	return name + " " + took
}

func textWidth(text string) float64 { return float64(cells(text)) * letterWidth }

// place puts the label into the bar, or else to its right, or else to its left.
func (b *box) place(left, right float64) {
	const gap = 5
	width := textWidth(b.label)
	switch {
	case width+2*gap <= b.width:
		b.inside, b.labelX, b.anchor = true, b.x+gap, "start"
	case b.x+b.width+gap+width <= right || b.x-gap-width < left:
		b.labelX, b.anchor = b.x+b.width+gap, "start"
	default:
		b.labelX, b.anchor = b.x-gap, "end"
	}
}

// extent returns the range that b and its label cover.
func (b *box) extent() (from, to float64) {
	from, to = b.x, b.x+b.width
	switch {
	case b.inside:
	case b.anchor == "end":
		from = b.labelX - textWidth(b.label)
	default:
		to = b.labelX + textWidth(b.label)
	}
	return from, to
}

// pack gives every box the topmost lane in which neither it nor its label overlaps another, and returns the number of
// lanes.
func (g *group) pack() int {
	type reach struct{ from, to float64 }
	var lanes [][]reach
	for i := range g.boxes {
		from, to := g.boxes[i].extent()
		free := func(lane []reach) bool {
			return !slices.ContainsFunc(lane, func(r reach) bool { return from < r.to+2 && r.from < to+2 })
		}
		n := slices.IndexFunc(lanes, free)
		if n < 0 {
			n, lanes = len(lanes), append(lanes, nil)
		}
		lanes[n] = append(lanes[n], reach{from, to})
		g.boxes[i].y = g.y + float64(n)*laneHeight
	}
	return len(lanes)
}

// tickStep returns a round time that fits at most a dozen times into length.
func tickStep(length time.Duration) time.Duration {
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if step := n * unit; length <= 12*step {
				return step
			}
		}
	}
	for _, seconds := range []time.Duration{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400} {
		if step := seconds * time.Second; length <= 12*step {
			return step
		}
	}
	return (length / 12).Truncate(time.Hour) + time.Hour
}

// tickText returns a time on the axis, exact where duration rounds.
func tickText(at time.Duration) string {
	text := at.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
