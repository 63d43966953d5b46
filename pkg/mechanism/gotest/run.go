package gotest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
)

// Options say how a run is shown.
type Options struct {
	Out     io.Writer
	Verbose bool // print all output, as go test -v does
	JSON    bool // print the events as they are, and nothing else
}

// grace is how long interrupted tests may take to clean up after themselves.
const grace = 10 * time.Second

// Run runs a command that prints the events of `go test -json`, and prints each package as it ends. The caller makes the command with
// exec.CommandContext, and neither starts it nor sets its standard output. When ctx ends, the command and all that it started are
// interrupted. The summary then has the packages that ended before, and those that were being tested as not run.
func Run(ctx context.Context, cmd *exec.Cmd, o Options) (*Summary, error) {
	began := time.Now()
	r, w := io.Pipe()
	cmd.Stdout = w
	child.Group(cmd)
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGINT) }
	cmd.WaitDelay = grace
	ran := make(chan error, 1)
	go func() {
		err := child.Run(cmd, syscall.SIGKILL, nil)
		ran <- err
		w.Close()
	}()
	s, unreadable := Read(r, o)
	r.CloseWithError(unreadable) // the command does not wait for a reader then
	err := <-ran
	if ctx.Err() != nil {
		_ = child.SignalGroup(cmd, syscall.SIGKILL) // there may be none left
	}
	s.Took = time.Since(began)
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return s, context.Cause(ctx)
	case unreadable != nil:
		return s, fmt.Errorf("output of go test: %w", unreadable)
	case err == nil || ended && exit.ExitCode() == 1 && s.Count("failed") > 0:
		return s, nil
	case ended:
		return s, fmt.Errorf("go test: %w, which no test explains", err)
	}
	return s, fmt.Errorf("go test: %w", err)
}

// Read reads events to their end, and prints each package as it ends. Lines that are no events are printed as they are.
func Read(r io.Reader, o Options) (*Summary, error) {
	s := &Summary{}
	c := &collector{verbose: o.Verbose, running: map[string]*Package{}, builds: map[string]string{}}
	for lines := bufio.NewReader(r); ; {
		line, failed := lines.ReadBytes('\n')
		p, ok := c.line(line)
		var err error
		if o.JSON || !ok {
			_, err = o.Out.Write(line)
		}
		if p != nil {
			s.Packages = append(s.Packages, p)
			if !o.JSON {
				_, err = io.WriteString(o.Out, p.text(o.Verbose))
			}
		}
		if failed == io.EOF {
			for _, path := range slices.Sorted(maps.Keys(c.running)) {
				s.Packages = append(s.Packages, c.running[path])
			}
			failed = nil
		} else if err == nil && failed == nil {
			continue
		}
		return s, errors.Join(err, failed)
	}
}
