package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/build/road/local"
)

// A bench is one run of this command. What several rows need is made for the first of them.
type bench struct {
	root     string // of the tree that is measured
	dir      string // temporary; everything is below
	n        int
	progress io.Writer

	warm    *sides // with a finished release and finished builds
	packing *packing
	away    *pair // with a release by each road
	bazel   *bazelSide
	cache   *cacheSide
	peers   map[string]*peer
	cold    *coldRelease
	first   *Row // with its samples
}

// missing says what a row cannot be measured without. The others still can.
type missing struct{ err error }

func (m *missing) Error() string { return m.err.Error() }

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// A measurement does one thing, with unmeasured preparations, and returns its sample.
type measurement func() (Sample, error)

// A contest measures the two sides of a row in rounds.
type contest struct {
	before       func() error // begins a round, unmeasured; may be nil
	ours, theirs measurement
	after        func() error // checks the results of a round; may be nil
}

// rounds measures both sides once a round. They take turns in going first.
func (c contest) rounds(n int, row *Row) error {
	ours := func() error { return into(&row.Ours, c.ours) }
	theirs := func() error { return into(&row.Theirs, c.theirs) }
	for i := range n {
		round := []func() error{c.before, ours, theirs, c.after}
		if i%2 == 1 {
			round[1], round[2] = theirs, ours
		}
		for _, step := range round {
			if step == nil {
				continue
			}
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

func into(samples *[]Sample, m measurement) error {
	s, err := m()
	*samples = append(*samples, s)
	return err
}

// time measures f, and prints its name.
func (b *bench) time(ctx context.Context, name string, f func() error) (Sample, error) {
	// Without sync(1), which is not in POSIX, the figure includes writes of others; that is no error.
	_ = exec.CommandContext(ctx, "sync").Run()
	before, start := processors(), time.Now()
	err := f()
	s := Sample{Value: time.Since(start).Seconds(), Others: processors().others(before)}
	if err != nil {
		return s, err
	}
	note := ""
	if s.Others > busy {
		note = fmt.Sprintf("   (others took %.0f%% of the processors)", 100*s.Others)
	}
	b.say("  %8.2f s  %s%s", s.Value, name, note)
	return s, nil
}

// command measures a command and everything that it starts, memory included.
func (b *bench) command(ctx context.Context, name string, cmd *exec.Cmd) (Sample, error) {
	peak := func() int64 { return 0 }
	s, err := b.time(ctx, name, func() error {
		return execute(ctx, cmd, func(pid int) { peak = local.WatchMemory(pid) })
	})
	if cmd.ProcessState != nil { // with the children that it waited for, and theirs
		s.Processor = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	s.Memory = peak()
	return s, err
}

// execute runs a command, and passes its process to a caller that wants it. Its error has the last lines of the command's output.
func execute(ctx context.Context, cmd *exec.Cmd, started func(pid int)) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // make hands it on to its children
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Start()
	if err == nil {
		if started != nil {
			started(cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s, in %s: %w\n%s", strings.Join(cmd.Args, " "), cmd.Dir, err, tail(out.String(), 20))
	}
	return nil
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
