package console

import (
	"strings"
	"unicode"
)

// wide holds the characters that take two cells on a terminal: East Asian wide and fullwidth ones, and emoji. It includes
// whole blocks where Unicode's list has gaps: a line that is cut a cell early looks better than one that wraps.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},                                      // Hangul initial consonants
		{Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x2329, Hi: 0x232a, Stride: 1}, // watch, hourglass; angle brackets
		{Lo: 0x23e9, Hi: 0x23ec, Stride: 1}, {Lo: 0x23f0, Hi: 0x23f3, Stride: 3}, // media buttons, clocks
		{Lo: 0x25fd, Hi: 0x25fe, Stride: 1}, {Lo: 0x2614, Hi: 0x2615, Stride: 1},
		{Lo: 0x2648, Hi: 0x2653, Stride: 1}, {Lo: 0x267f, Hi: 0x2693, Stride: 0x14},
		{Lo: 0x26a1, Hi: 0x26a1, Stride: 1}, {Lo: 0x26aa, Hi: 0x26ab, Stride: 1},
		{Lo: 0x26bd, Hi: 0x26be, Stride: 1}, {Lo: 0x26c4, Hi: 0x26c5, Stride: 1},
		{Lo: 0x26ce, Hi: 0x26d4, Stride: 6}, {Lo: 0x26ea, Hi: 0x26ea, Stride: 1},
		{Lo: 0x26f2, Hi: 0x26f3, Stride: 1}, {Lo: 0x26f5, Hi: 0x26fa, Stride: 5},
		{Lo: 0x26fd, Hi: 0x2705, Stride: 8}, {Lo: 0x270a, Hi: 0x270b, Stride: 1},
		{Lo: 0x2728, Hi: 0x2728, Stride: 1}, {Lo: 0x274c, Hi: 0x274e, Stride: 2},
		{Lo: 0x2753, Hi: 0x2755, Stride: 1}, {Lo: 0x2757, Hi: 0x2757, Stride: 1},
		{Lo: 0x2795, Hi: 0x2797, Stride: 1}, {Lo: 0x27b0, Hi: 0x27bf, Stride: 0xf},
		{Lo: 0x2b1b, Hi: 0x2b1c, Stride: 1}, {Lo: 0x2b50, Hi: 0x2b55, Stride: 5},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0x4dbf, Stride: 1}, // CJK radicals to extension A
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, // CJK, Yi; Hangul extended
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, // Hangul; CJK compatibility
		{Lo: 0xfe10, Hi: 0xfe19, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}, // fullwidth forms
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x18dff, Stride: 1}, {Lo: 0x1aff0, Hi: 0x1b2ff, Stride: 1}, // Tangut, Khitan; Kana
		{Lo: 0x1f004, Hi: 0x1f004, Stride: 1}, {Lo: 0x1f0cf, Hi: 0x1f0cf, Stride: 1},
		{Lo: 0x1f18e, Hi: 0x1f18e, Stride: 1}, {Lo: 0x1f191, Hi: 0x1f19a, Stride: 1},
		{Lo: 0x1f200, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, // emoji
		{Lo: 0x1f7e0, Hi: 0x1f7f0, Stride: 1}, {Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x1fa70, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}, // CJK extensions
	},
}

// runeCells returns the number of cells that r takes: 2 if it is wide, 0 if it joins the rune before it.
func runeCells(r rune) int {
	switch {
	case r < 0x300 && r != 0xad:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// cells returns the number of cells that text takes.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

// truncate cuts text to at most width cells. If it cuts anything, the last cell is an ellipsis. Marks stay with their
// letter.
func truncate(text string, width int) string {
	if cells(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	n := 0
	for i, r := range text {
		if n += runeCells(r); n > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// pad appends blanks up to width cells.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-cells(text)))
}

// padLeft prepends blanks up to width cells.
func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-cells(text))) + text
}

// oneLine returns the last line of text, which says what a tool does now, without control characters: they would move the
// cursor or change colors.
func oneLine(text string) string {
	text = strings.TrimSpace(text)
	text = text[strings.LastIndexAny(text, "\r\n")+1:]
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// A style is the parameter of an SGR escape sequence. It uses the terminal's own 16 colors only, which the user made legible
// on the background.
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

// A line consists of pieces. It has no control characters, so it is as wide as its cells.
type line []piece

func (l line) cells() int {
	n := 0
	for _, p := range l {
		n += cells(p.text)
	}
	return n
}

// fit returns l cut to at most width cells.
func (l line) fit(width int) line {
	if l.cells() <= width {
		return l
	}
	var cut line
	for _, p := range l {
		n := cells(p.text)
		if n >= width { // at least one cell is left for the ellipsis
			if n == width {
				p.text += " " // more follows, so the cut must show
			}
			return append(cut, piece{p.style, truncate(p.text, width)})
		}
		cut, width = append(cut, p), width-n
	}
	return cut
}

// render returns l as text, with escape sequences if color is on.
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
