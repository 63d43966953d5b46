package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/make/road/local"
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
	ours, theirs measurement  // theirs may be nil
	after        func() error // checks the results of a round; may be nil
	servers      bool         // programs that this one has not started work for a side, such as an engine, and count as others
}

// patience is how many times as many rounds as wanted are tried.
const patience = 3

// rounds measures both sides once a round, until n rounds count: those in which others did not take many of the processors. The sides take
// turns in going first. A single round always counts.
func (c contest) rounds(n int, row *Row) error {
	for i, counted := 0, 0; counted < n; i++ {
		if i == patience*n {
			return &missing{fmt.Errorf("others took over %.0f%% of the processors in all but %d of %d rounds: measure again on a quiet machine",
				100*busy, counted, i)}
		}
		var ours, theirs []Sample
		round := []func() error{c.before, c.ours.into(&ours), c.theirs.into(&theirs), c.after}
		if i%2 == 1 {
			round[1], round[2] = round[2], round[1]
		}
		for _, step := range round {
			if step == nil {
				continue
			}
			if err := step(); err != nil {
				return err
			}
		}
		disturbed := func(s Sample) bool { return s.Others > busy }
		if n > 1 && !c.servers && slices.ContainsFunc(slices.Concat(ours, theirs), disturbed) {
			continue
		}
		counted++
		row.Ours, row.Theirs = append(row.Ours, ours...), append(row.Theirs, theirs...)
	}
	return nil
}

// into returns a function that appends a sample, or nil.
func (m measurement) into(samples *[]Sample) func() error {
	if m == nil {
		return nil
	}
	return func() error {
		s, err := m()
		*samples = append(*samples, s)
		return err
	}
}

// warmly does what a contest measures once before, unmeasured.
func (c contest) warmly(n int, row *Row) error {
	if err := c.rounds(1, &Row{}); err != nil {
		return err
	}
	return c.rounds(n, row)
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
