package console

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// fills are Paul Tol's "light" qualitative colors, which color-blind readers can tell apart and which are light enough for
// black text. Phases take them in order of appearance.
var fills = []string{"#77aadd", "#ee8866", "#eedd88", "#44bb99", "#ffaabb", "#99ddff", "#bbcc33", "#dddddd"}

// svgStyle is plain CSS. A viewer that does not know media queries shows the light variant.
const svgStyle = `
svg { background: #ffffff; }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
.paper { fill: #ffffff; }
.title { font-size: 16px; font-weight: 600; }
.faint { fill: #59636e; }
.phase { font-weight: 600; }
.band { fill: #f6f8fa; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.in { fill: #111111; }
.bar { stroke: #00000040; stroke-width: 1; }
.failed { stroke: #cf222e; stroke-width: 2; }
.open { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 4 3; }
g.job:hover .bar { stroke: #1f2328; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; }
text { fill: #f0f6fc; }
.paper { fill: #0d1117; }
.faint { fill: #9198a1; }
.band { fill: #151b23; }
.grid { stroke: #3d444d; }
g.job:hover .bar { stroke: #f0f6fc; }
}
`

// draw writes the chart as SVG.
func (c *chart) draw(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %[1]g %[2]g"`+
		` role="graphics-document" aria-labelledby="title desc">`+"\n", chartWidth, c.height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", escaped(c.title), escaped(c.subtitle))
	fmt.Fprintf(&b, "<style>%s</style>\n", svgStyle)
	fmt.Fprintf(&b, `<rect class="paper" width="%g" height="%g"/>`+"\n", chartWidth, c.height)
	fmt.Fprintf(&b, `<text class="title" x="%g" y="30">%s</text>`+"\n", margin, escaped(c.title))
	fmt.Fprintf(&b, `<text class="faint" x="%g" y="50">%s</text>`+"\n", margin, escaped(c.subtitle))
	for i, g := range c.groups {
		if i%2 == 0 {
			fmt.Fprintf(&b, `<rect class="band" x="0" y="%g" width="%g" height="%g"/>`+"\n",
				g.y-groupGap/2, chartWidth, g.height+groupGap)
		}
	}
	for _, t := range c.ticks {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %g V%g"/>`+"\n", t.x, headHeight-8, c.height-margin)
		fmt.Fprintf(&b, `<text class="faint" x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", t.x, headHeight-13, t.text)
	}
	for i, g := range c.groups {
		fmt.Fprintf(&b, `<text class="phase" x="%g" y="%g">%s</text>`+"\n", margin, g.y+17, escaped(oneLine(g.phase)))
		for _, box := range g.boxes {
			box.draw(&b, fills[i%len(fills)])
		}
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func (b *box) draw(w io.Writer, fill string) {
	class, inside := "bar", ""
	switch {
	case b.job.failed:
		class += " failed"
	case b.job.end.IsZero():
		class += " open"
	}
	if b.inside {
		inside = ` class="in"`
	}
	tip := escaped(b.tip())
	fmt.Fprintf(w, `<g class="job" role="graphics-symbol"><title>%s</title>`, tip)
	fmt.Fprintf(w, `<rect class="%s" x="%.1f" y="%g" width="%.1f" height="%g" rx="3" fill="%s"/>`,
		class, b.x, b.y+(laneHeight-barHeight)/2, b.width, barHeight, fill)
	fmt.Fprintf(w, `<text%s x="%.1f" y="%g" text-anchor="%s">%s</text></g>`+"\n",
		inside, b.labelX, b.y+17, b.anchor, escaped(b.label))
}

// tip returns the text that pointing at a bar shows.
func (b *box) tip() string {
	j := b.job
	lines := []string{j.title()}
	switch {
	case j.failed:
		lines = append(lines, "failed"+j.failedAfter()+": "+j.reason())
	case j.end.IsZero():
		lines = append(lines, "not finished")
	default:
		lines = append(lines, "done in "+duration(j.took()))
	}
	if j.by != "" {
		lines = append(lines, "by "+oneLine(j.by))
	}
	if j.memory > 0 {
		lines = append(lines, "peak memory "+Size(j.memory))
	}
	for _, member := range j.members {
		lines = append(lines, "· "+oneLine(member))
	}
	return strings.Join(lines, "\n")
}

// escaped returns text for XML, between tags and in attributes.
func escaped(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // writing to a strings.Builder cannot fail
	return b.String()
}
