package session

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"slipway.build/pkg/mechanism/tail"
)

// Say prints a line of progress or a remark, on standard error.
func (o *Session) Say(text string) { fmt.Fprintln(o.Err, "slipway:", tail.Redact(text)) }

// PrintJSON prints the result of a query.
func (o *Session) PrintJSON(v any) error {
	e := json.NewEncoder(o.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Answer prints the result of a query, as text or as JSON.
func (o *Session) Answer(v any, text func(io.Writer) error) error {
	if o.JSON {
		return o.PrintJSON(v)
	}
	return text(o.Out)
}

// WriteTable writes rows below a header, in columns. Without rows it writes nothing.
func WriteTable(to io.Writer, header string, rows func(row func(cells ...string))) error {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	n := 0
	fmt.Fprintln(w, header)
	rows(func(cells ...string) {
		n++
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	})
	if err := w.Flush(); err != nil || n == 0 {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil { // an empty last cell is not worth its spaces
			return err
		}
	}
	return nil
}

// Count returns a number of things in words.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Quote quotes a word of a command line for a shell.
func Quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9/._+@:,%-][A-Za-z0-9/._+@:,%=-]*$`)
