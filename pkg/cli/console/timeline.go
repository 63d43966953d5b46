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
	from, to    float64 // what the bar and its label cover
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
		length = max(length, cmp.Or(j.end, r.last).Sub(r.began))
	}
	xOf := func(at time.Time) float64 {
		return c.left + (c.right-c.left)*max(0, float64(at.Sub(r.began))/float64(length))
	}
	step := tickStep(length)
	for at := time.Duration(0); at <= length; at += step {
		c.ticks = append(c.ticks, tick{xOf(r.began.Add(at)), tickText(at)})
	}
	for _, j := range jobs {
		i := slices.IndexFunc(c.groups, func(g group) bool { return g.phase == j.phase })
		if i < 0 {
			i, c.groups = len(c.groups), append(c.groups, group{phase: j.phase})
		}
		x := xOf(j.start)
		b := box{job: j, x: x, width: max(barMinimum, xOf(cmp.Or(j.end, r.last))-x), label: label(j, r)}
		b.place(c.left, c.right)
		c.groups[i].boxes = append(c.groups[i].boxes, b)
	}
	y := headHeight
	for i := range c.groups {
		g := &c.groups[i]
		g.y = y
		g.height = float64(g.pack()) * laneHeight
		y += g.height + groupGap
	}
	c.height = y + margin
	return c
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
	took := duration(cmp.Or(j.end, r.last).Sub(j.start))
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
	b.from, b.to = b.x, b.x+b.width
	switch {
	case width+2*gap <= b.width:
		b.inside, b.labelX, b.anchor = true, b.x+gap, "start"
	case b.x+b.width+gap+width <= right || b.x-gap-width < left:
		b.labelX, b.anchor = b.to+gap, "start"
		b.to = b.labelX + width
	default:
		b.labelX, b.anchor = b.from-gap, "end"
		b.from = b.labelX - width
	}
}

// pack gives every box the topmost lane in which neither it nor its label overlaps one before it, and returns the number of lanes.
func (g *group) pack() int {
	var ends []float64 // of what each lane has
	for i := range g.boxes {
		b := &g.boxes[i]
		n := slices.IndexFunc(ends, func(end float64) bool { return end+2 <= b.from })
		if n < 0 {
			n, ends = len(ends), append(ends, 0)
		}
		ends[n] = b.to
		b.y = g.y + float64(n)*laneHeight
	}
	return len(ends)
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
