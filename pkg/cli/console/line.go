package console

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// ansi measures text as terminals show it: a wide character takes two cells, an accent or a color none.
var ansi = displaywidth.Options{ControlSequences: true}

// cells returns the number of cells that text takes.
func cells(text string) int { return ansi.String(text) }

// truncate cuts text to at most width cells. If it cuts anything, the last cell is an ellipsis.
func truncate(text string, width int) string {
	if width < 1 {
		return ""
	}
	return ansi.TruncateString(text, width, "…")
}

// pad appends blanks up to width cells.
func pad(text string, width int) string { return text + strings.Repeat(" ", max(0, width-cells(text))) }

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
	bold  style = "1"
	dim   style = "2"
	red   style = "31"
	green style = "32"
	cyan  style = "36"
)

// A palette is on if output has colors.
type palette bool

// paint returns text in a style.
func (p palette) paint(s style, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// bar draws done of total in width cells, the rest dimmed.
func (p palette) bar(done, total int64, width int) string {
	full := 0
	if total > 0 {
		full = int(float64(width) * float64(min(max(done, 0), total)) / float64(total))
	}
	return p.paint(cyan, strings.Repeat("━", full)) + p.paint(dim, strings.Repeat("─", width-full))
}
