// Package tail keeps the last lines of a program's output, which say why it failed.
//
// It removes user names and passwords from addresses, because others may see the logs and terminals that the lines go to.
//
// What must never be in here: which programs these are, and what their lines mean.
package tail

import (
	"fmt"
	"regexp"
	"strings"
)

// Lines is a writer for a program's output that keeps the last lines.
type Lines struct {
	Each func(string) // is called with each whole line that is not blank; may be nil
	last []string
	rest string
}

const (
	lastLines = 15
	maxLine   = 1 << 20 // bytes that are kept of a line that has no end yet
)

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	parts := strings.Split(l.rest+string(p), "\n")
	l.rest = parts[len(parts)-1]
	l.rest = l.rest[:min(len(l.rest), maxLine)]
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

// Flush handles a last line that has no end, after the program has ended.
func (l *Lines) Flush() {
	l.add(l.rest)
	l.rest = ""
}

// Explain returns err with the last lines, if there are any.
func (l *Lines) Explain(err error) error {
	l.Flush()
	if len(l.last) == 0 {
		return err
	}
	return fmt.Errorf("%w; its last lines:\n  %s", err, strings.Join(l.last, "\n  "))
}

// A password may hold an @ of its own, as net/url, git and curl read addresses: the last one before the path ends it.
var credentials = regexp.MustCompile(`://[^/\s]+@`)

// Redact replaces user names and passwords in addresses by asterisks.
func Redact(text string) string { return credentials.ReplaceAllString(text, "://***@") }
