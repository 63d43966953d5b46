// Package goflag quotes words for flags of the go command that hold several: -ldflags, -toolexec.
//
// What must never be in here: which flags there are.
package goflag

import (
	"fmt"
	"strings"
)

// Quote quotes a word as the go command splits such flags: quotes of either kind enclose all of it, and nothing escapes them. A word with
// both kinds is an error.
func Quote(word string) (string, error) {
	switch {
	case word != "" && !strings.ContainsAny(word, " \t\r\n'\""):
		return word, nil
	case !strings.Contains(word, "'"):
		return "'" + word + "'", nil
	case !strings.Contains(word, `"`):
		return `"` + word + `"`, nil
	}
	return "", fmt.Errorf("%s: the go command takes no word with quotes of both kinds", word)
}
