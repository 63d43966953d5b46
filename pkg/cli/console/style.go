package console

import "strings"

// A style is the parameter of an SGR escape sequence. Only the terminal's own 16 colors are used: they are
// what the user made legible on the background at hand.
type style string

const (
	normal style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	cyan   style = "36"
)

// A piece is text in one style.
type piece struct {
	style style
	text  string
}

// A line is made of pieces. It has no control characters, and so is as wide as its cells.
type line []piece

func (l line) cells() int {
	n := 0
	for _, p := range l {
		n += cells(p.text)
	}
	return n
}

// fit is l cut to at most width cells.
func (l line) fit(width int) line {
	if l.cells() <= width {
		return l
	}
	var cut line
	for _, p := range l {
		n := cells(p.text)
		if n >= width { // at least one cell is left for the ellipsis
			if n == width {
				p.text += " " // there is more to come, so this has to end in an ellipsis
			}
			return append(cut, piece{p.style, truncate(p.text, width)})
		}
		cut, width = append(cut, p), width-n
	}
	return cut
}

// render is l with escape sequences, or without if color is off.
func (l line) render(color bool) string {
	var b strings.Builder
	for _, p := range l {
		if !color || p.style == normal || p.text == "" {
			b.WriteString(p.text)
			continue
		}
		b.WriteString("\x1b[" + string(p.style) + "m" + p.text + "\x1b[0m")
	}
	return b.String()
}

// bar draws done of total in width cells, the rest dimmed.
func bar(done, total int64, width int) line {
	full := 0
	if total > 0 {
		full = int(float64(width) * float64(min(max(done, 0), total)) / float64(total))
	}
	return line{{cyan, strings.Repeat("━", full)}, {dim, strings.Repeat("─", width-full)}}
}
