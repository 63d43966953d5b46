package logs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/suggest"
)

// Options say which lines to read.
type Options struct {
	Last   int  // how many lines of each log at most; negative means all
	Follow bool // go on until the context ends, with logs that appear meanwhile
}

// Read calls each with the lines of a component's logs, and with where they come from. Find returns the logs that there are now.
func Read(ctx context.Context, component string, o Options, find func() ([]File, error), each func(from, line string) error) error {
	var open []*reader
	defer func() {
		for _, r := range open {
			r.file.Close()
		}
	}()
	for last := o.Last; ; last = -1 {
		files, err := find()
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Component != component || slices.ContainsFunc(open, func(r *reader) bool { return r.path == f.path }) {
				continue
			}
			file, err := os.Open(f.path)
			if errors.Is(err, fs.ErrNotExist) {
				continue // its container was removed this moment
			}
			if err != nil {
				return err
			}
			open = append(open, &reader{File: f, file: file, last: last})
		}
		if len(open) == 0 {
			return suggest.Unknown("log", component, Components(files))
		}
		for _, r := range open {
			if err := r.read(each, !o.Follow); err != nil {
				return err
			}
		}
		if !o.Follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// A reader reads the lines of a log.
type reader struct {
	File
	file    *os.File
	at      int64
	last    int    // how many of the lines that are there already; negative means all
	rest    string // the beginning of a line
	partial string // the beginning of a line of a container, which the container runtime has split
}

// read calls each with the lines that are new. At the end, a line may lack its newline.
func (r *reader) read(each func(from, line string) error, end bool) error {
	var lines []string
	for again := true; again; {
		more, err := r.lines()
		if err != nil {
			return err
		}
		lines = append(lines, more...)
		if again, err = r.reopen(); err != nil {
			return err
		}
	}
	if end && r.rest != "" {
		lines = append(lines, r.line(r.rest)...)
	}
	if r.last >= 0 {
		lines = lines[max(0, len(lines)-r.last):]
		r.last = -1
	}
	for _, line := range lines {
		if err := each(r.From, line); err != nil {
			return err
		}
	}
	return nil
}

// reopen opens the file that has the log's name by now, and reports whether it is another one. There may be none.
func (r *reader) reopen() (bool, error) {
	f, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, noInfo := f.Stat()
	before, err := r.file.Stat()
	if err := errors.Join(noInfo, err); err != nil || os.SameFile(before, now) {
		return false, errors.Join(err, f.Close())
	}
	r.file.Close()
	r.file, r.at = f, 0
	return true, nil
}

// lines returns the whole lines after what was read before.
func (r *reader) lines() ([]string, error) {
	info, err := r.file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < r.at {
		r.at, r.rest = 0, ""
	}
	text, err := io.ReadAll(io.NewSectionReader(r.file, r.at, info.Size()-r.at))
	if err != nil {
		return nil, err
	}
	r.at += int64(len(text))
	parts := strings.Split(r.rest+string(text), "\n")
	r.rest = parts[len(parts)-1]
	var lines []string
	for _, line := range parts[:len(parts)-1] {
		lines = append(lines, r.line(line)...)
	}
	return lines, nil
}

// line returns what was written by a line of the log, unless that is only a part of it. The container runtime writes TIME STREAM TAG TEXT.
// The tag is F for a whole line or the end of one, and P for a part that goes on.
func (r *reader) line(line string) []string {
	fields := strings.SplitN(line, " ", 4)
	if !r.container || len(fields) < 4 {
		return []string{line}
	}
	r.partial += fields[3]
	if strings.HasPrefix(fields[2], "P") {
		return nil
	}
	line, r.partial = r.partial, ""
	return []string{line}
}
