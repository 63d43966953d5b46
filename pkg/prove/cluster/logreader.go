package cluster

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// A logReader reads the lines of a log that grows, is rotated, or is cut and written anew.
type logReader struct {
	logFile
	file *os.File
	at   int64
	last int    // how many of the lines that are there already; negative means all
	rest string // the beginning of a line
	part string // the beginning of a line of a container, which the container runtime has cut
}

// read calls each with the lines that are new. At the end, a line may lack its newline.
func (r *logReader) read(each func(from, line string) error, end bool) error {
	var lines []string
	for {
		more, err := r.lines()
		if err != nil {
			return err
		}
		lines = append(lines, more...)
		now, err := os.Stat(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			break // what was written before is read
		}
		if err != nil {
			return err
		}
		known, err := r.file.Stat()
		if err != nil {
			return err
		}
		if os.SameFile(known, now) {
			break
		}
		f, err := os.Open(r.path)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		r.file.Close()
		r.file, r.at = f, 0
	}
	if end && r.rest != "" {
		lines = append(lines, r.line(r.rest)...)
	}
	if r.last >= 0 {
		lines = lines[max(0, len(lines)-r.last):]
		r.last = -1
	}
	for _, line := range lines {
		if err := each(r.from, line); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the whole lines after what was read before.
func (r *logReader) lines() ([]string, error) {
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

// line returns what was written by a line of the log, unless that is only a part of it.
func (r *logReader) line(line string) []string {
	if !r.container {
		return []string{line}
	}
	written, whole := containerLine(line)
	if r.part += written; !whole {
		return nil
	}
	line, r.part = r.part, ""
	return []string{line}
}

// containerLine returns what a container wrote, from a line of a log of the container runtime: TIME STREAM TAG TEXT. The tag is F for a
// whole line or the end of one, and P for a part that goes on.
func containerLine(line string) (text string, whole bool) {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) < 4 {
		return line, true
	}
	return fields[3], !strings.HasPrefix(fields[2], "P")
}
