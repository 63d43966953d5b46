// Package tail keeps the last lines of a program's output, which say why it failed.
//
// Addresses lose user names and passwords on the way: the lines are for logs and terminals that others see.
package tail

import (
	"fmt"
	"regexp"
	"strings"
)

// Lines are the output of something, of which the last ones say why it failed.
type Lines struct {
	Each func(string) // is told each whole line; may be nil
	last []string
	rest string
}

const lastLines = 15

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	parts := strings.Split(l.rest+string(p), "\n")
	l.rest = parts[len(parts)-1]
	for _, line := range parts[:len(parts)-1] {
		l.add(line)
	}
	return len(p), nil
}

func (l *Lines) add(line string) {
	line = strings.TrimRight(Redact(line), " \r")
	if line == "" {
		return
	}
	if l.Each != nil {
		l.Each(line)
	}
	if l.last = append(l.last, line); len(l.last) > lastLines {
		l.last = l.last[1:]
	}
}

// Explain adds the last lines to an error.
func (l *Lines) Explain(err error) error {
	if l.rest != "" {
		l.add(l.rest)
		l.rest = ""
	}
	if len(l.last) == 0 {
		return err
	}
	return fmt.Errorf("%w; its last lines:\n  %s", err, strings.Join(l.last, "\n  "))
}

var credentials = regexp.MustCompile(`://[^/@\s]+@`)

// Redact takes user names and passwords out of addresses.
func Redact(text string) string { return credentials.ReplaceAllString(text, "://***@") }
