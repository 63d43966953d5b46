package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// soon is the pause between questions about what takes a moment.
const soon = 50 * time.Millisecond

// eachNode calls f for all nodes at once.
func (s *State) eachNode(ctx context.Context, f func(context.Context, node) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range s.Nodes() {
		n := s.node(i + 1)
		g.Go(func() error {
			if err := f(ctx, n); err != nil {
				return fmt.Errorf("node %s: %w", n.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// putNodeProgram restarts a program that the init of each node keeps running, as another one. Containers run on.
func (s *State) putNodeProgram(ctx context.Context, name string, p *Program) error {
	return s.eachNode(ctx, func(ctx context.Context, n node) error {
		if err := s.placeProgram(n, name, p); err != nil {
			return err
		}
		file, err := s.fileOf(name, p)
		if err != nil {
			return err
		}
		if err := s.restartProgram(ctx, n, name); err != nil {
			return err
		}
		pid, err := s.keptProcess(n, name)
		if err != nil {
			return err
		}
		var ended error
		err = s.eventuallyEvery(ctx, soon, func(ctx context.Context) (bool, error) {
			now, err := s.keptProcess(n, name)
			if err != nil {
				return false, err
			}
			if now != pid {
				ended = fmt.Errorf("%s has ended", name)
				return true, nil
			}
			if err := s.runs(n, pid, file); err != nil {
				return false, err
			}
			if name == "kubelet" {
				said, err := s.kubectl(ctx, "get", "--raw=/api/v1/nodes/"+n.name+"/proxy/healthz", "--request-timeout=5s")
				return err == nil && strings.TrimSpace(said) == "ok", err
			}
			_, err = s.inNode(ctx, n, "ctr", "--connect-timeout=1s", "version")
			return err == nil, err
		})
		return errors.Join(ended, err)
	})
}

// fileOf returns the path, on this machine, of a program, or of the release's with that name if it is nil.
func (s *State) fileOf(name string, p *Program) (string, error) {
	if p != nil {
		return s.stored(*p), nil
	}
	b, err := s.server()
	if err != nil {
		return "", err
	}
	return b.path(name)
}

// keptProcess returns the process, in the node's own numbers, of a program that the init of a node keeps running.
func (s *State) keptProcess(n node, name string) (string, error) {
	pid, err := os.ReadFile(s.InNode(n.name, "/run/slipway/"+name+".pid"))
	return strings.TrimSpace(string(pid)), err
}

// runs returns an error unless a process of a node runs a file of this machine.
func (s *State) runs(n node, pid, file string) error {
	program, err := os.Stat(s.InNode(n.name, filepath.Join("/proc", pid, "exe")))
	if err != nil {
		return err
	}
	want, err := os.Stat(file)
	if err == nil && !os.SameFile(program, want) {
		err = fmt.Errorf("process %s does not run %s", pid, file)
	}
	return err
}

// putProcess restarts a program of a control plane without nodes, with the same flags, and then others that have ended: without an API
// server, they may.
func (s *State) putProcess(ctx context.Context, name string, p *Program) error {
	if err := s.restartProcess(ctx, name, p); err != nil {
		return err
	}
	for _, other := range slices.Clone(s.Processes) {
		if other.Name == name || other.alive() {
			continue
		}
		if err := s.restartProcess(ctx, other.Name, s.current(other.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) restartProcess(ctx context.Context, name string, p *Program) error {
	old, ok := s.process(name)
	if !ok {
		return fmt.Errorf("cluster %s has no %s", s.Name, name)
	}
	if err := end(ctx, old); err != nil {
		return err
	}
	program, err := s.fileOf(name, p)
	if err != nil {
		return err
	}
	next := Process{Name: name, Address: old.Address, Flags: old.Flags}
	if err := s.start(next, 0, s.dir, append([]string{program}, old.Flags...)...); err != nil {
		return err
	}
	return s.answers(ctx, name, old.Address)
}

// end asks a process to end. Kubernetes' programs end at once when they are asked again; others are killed.
func end(ctx context.Context, p Process) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		if !p.alive() {
			return nil
		}
		if err := p.signal(sig, os.FindProcess); err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := until(limit, 10*time.Millisecond, func() (bool, error) { return !p.alive(), nil })
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%s (process %d) does not end", p.Name, p.PID)
}

// put adds a process to the state, in the place of an ended one of that name.
func put(all []Process, p Process) []Process {
	i := slices.IndexFunc(all, func(other Process) bool { return other.Name == p.Name })
	if i < 0 {
		return append(all, p)
	}
	all = slices.Clone(all)
	all[i] = p
	return all
}
