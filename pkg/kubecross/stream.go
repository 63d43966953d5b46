package kubecross

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A message is one of those by which an engine tells how a build, a pull or an import goes.
type message struct {
	Stream      string `json:"stream"` // of a build: output, in pieces
	Status      string `json:"status"` // of a pull or an import
	Error       string `json:"error"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// read hands on an engine's messages until there are no more. An error that they tell of is returned, without the output that
// went before it.
func read(r io.Reader, each func(message)) error {
	d := json.NewDecoder(r)
	for {
		var m message
		err := d.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the engine's answer: %w", err)
		case m.ErrorDetail.Message != "":
			return errors.New(redact(m.ErrorDetail.Message))
		case m.Error != "":
			return errors.New(redact(m.Error))
		}
		each(m)
	}
}

// lines are the output of something, of which the last ones say why it failed.
type lines struct {
	each func(string) // is told each whole line; may be nil
	last []string
	rest string
}

const lastLines = 15

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	parts := strings.Split(l.rest+string(p), "\n")
	l.rest = parts[len(parts)-1]
	for _, line := range parts[:len(parts)-1] {
		l.add(line)
	}
	return len(p), nil
}

func (l *lines) add(line string) {
	line = strings.TrimRight(redact(line), " \r")
	if line == "" {
		return
	}
	if l.each != nil {
		l.each(line)
	}
	if l.last = append(l.last, line); len(l.last) > lastLines {
		l.last = l.last[1:]
	}
}

// explain adds the last lines to an error.
func (l *lines) explain(err error) error {
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

// redact takes user names and passwords out of addresses.
func redact(text string) string { return credentials.ReplaceAllString(text, "://***@") }
