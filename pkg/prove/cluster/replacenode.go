package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/prove/cluster/machine"
)

// installNodeProgram replaces a program that the init of each node keeps running. Containers continue.
func (s *State) installNodeProgram(ctx context.Context, name string, p *Program) error {
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
		return s.eventually(ctx, shortPause, func(ctx context.Context) error {
			now, err := s.keptProcess(n, name)
			if err != nil {
				return err
			}
			if now != pid {
				return machine.Stop(fmt.Errorf("%s has ended", name))
			}
			if err := s.runs(n, pid, file); err != nil {
				return err
			}
			if name != "kubelet" {
				_, err = s.inNode(ctx, n, "ctr", "--connect-timeout=1s", "version")
				return err
			}
			out, err := s.kubectl(ctx, "get", "--raw=/api/v1/nodes/"+n.name+"/proxy/healthz", "--request-timeout=5s")
			if err == nil && out != "ok" {
				err = errors.New(out)
			}
			return err
		})
	})
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

// installProcess replaces a program of a control plane without nodes, with the same flags. Then it restarts programs that have ended
// while there was no API server.
func (s *State) installProcess(ctx context.Context, name string, p *Program) error {
	if err := s.restartProcess(ctx, name, p); err != nil {
		return err
	}
	for _, other := range slices.Clone(s.Processes) {
		if other.Name == name || other.Alive() {
			continue
		}
		if err := s.restartProcess(ctx, other.Name, s.current(other.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) restartProcess(ctx context.Context, name string, p *Program) error {
	process, ok := s.process(name)
	if !ok {
		return fmt.Errorf("cluster %s has no %s", s.Name, name)
	}
	if err := process.End(ctx); err != nil {
		return fmt.Errorf("%s (process %d): %w", name, process.PID, err)
	}
	program, err := s.fileOf(name, p)
	if err != nil {
		return err
	}
	return s.startProgram(ctx, program, process)
}
