package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/prove/cluster/machine"
)

// start starts a command that outlives this process, and writes it to the state before the command does anything.
func (s *State) start(p Process, namespaces uintptr, dir string, command ...string) error {
	err := machine.Start(dir, s.log(p.Name), namespaces, func(started machine.Process) error {
		p.Process = started
		return s.change(func() { s.Processes = withProcess(s.Processes, p) })
	}, command...)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	return nil
}

func (s *State) log(name string) string { return s.path("log", name+".log") }

// withProcess adds a process, in the place of an ended one of that name.
func withProcess(all []Process, p Process) []Process {
	i := slices.IndexFunc(all, func(other Process) bool { return other.Name == p.Name })
	if i < 0 {
		return append(all, p)
	}
	all = slices.Clone(all)
	all[i] = p
	return all
}

// endProcesses kills the processes of a cluster. When the init of a node ends, everything in the node ends.
func (s *State) endProcesses(ctx context.Context) error {
	if s.Boot != machine.BootID() {
		return nil
	}
	for _, p := range s.Processes {
		if err := p.Kill(); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	for _, p := range s.Processes {
		if err := p.Await(ctx); err != nil {
			return fmt.Errorf("%s (process %d) does not end: %w", p.Name, p.PID, err)
		}
	}
	return nil
}

// Pauses between tries: short for what takes a moment.
const (
	shortPause = 50 * time.Millisecond
	longPause  = 250 * time.Millisecond
)

// retry tries again after each pause until it succeeds, as long as the cluster's patience lasts.
func (s *State) retry(ctx context.Context, pause time.Duration, try func(context.Context) error) error {
	limit, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("%w: waited for %v", ErrNotReady, s.patience))
	defer cancel()
	return machine.Retry(limit, pause, func() error { return try(limit) })
}

// eventually tries again after each pause until it succeeds, while the cluster's processes live.
func (s *State) eventually(ctx context.Context, pause time.Duration, try func(context.Context) error) error {
	return s.retry(ctx, pause, func(ctx context.Context) error {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ended := s.checkAlive(); ended != nil {
			return machine.Stop(ended)
		}
		return err
	})
}

// running reports whether the cluster was ready and none of its processes has ended since.
func (s *State) running() bool { return s.Ready && s.Boot == machine.BootID() && s.checkAlive() == nil }

// Ended returns an error if one of the processes of a cluster that was ready has ended, unless its program is being replaced.
func (s *State) Ended() error {
	if !s.Ready || len(s.Unsettled) > 0 {
		return nil
	}
	return s.checkAlive()
}

// checkAlive returns an error if one of the cluster's processes has ended.
func (s *State) checkAlive() error {
	s.mu.Lock()
	all := slices.Clone(s.Processes)
	s.mu.Unlock()
	for _, p := range all {
		if err := s.checkProcess(p); err != nil {
			return err
		}
	}
	return nil
}

// checkProcess returns an error if a process has ended, with the last lines of its output.
func (s *State) checkProcess(p Process) error {
	if p.Alive() {
		return nil
	}
	var lines tail.Lines
	if text, err := os.ReadFile(s.log(p.Name)); err == nil {
		_, _ = lines.Write(text) // never fails
	}
	return lines.Explain(fmt.Errorf("%s has ended: see %s", p.Name, s.log(p.Name)))
}
