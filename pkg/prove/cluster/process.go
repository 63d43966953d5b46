package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/tail"
)

// waitForGo has a process wait until it is written down. If who started it dies before, it ends.
const waitForGo = `read -r go && exec "$@" </dev/null`

// start starts a command that outlives this process, and writes it down before it does anything.
func (s *State) start(p Process, namespaces uintptr, dir string, command ...string) error {
	if err := os.MkdirAll(s.path("log"), 0o755); err != nil {
		return err
	}
	log, err := os.Create(s.log(p.Name))
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command("/bin/sh", append([]string{"-c", waitForGo, "sh"}, command...)...)
	c.Dir, c.Env, c.Stdout, c.Stderr, c.SysProcAttr = dir, environment(), log, log, apart(namespaces)
	stdin, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	go func() { _ = c.Wait() }() // what ends while this process lives must not stay as a zombie
	defer stdin.Close()
	p.PID = c.Process.Pid
	if p.Start, err = startTime(p.PID); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := s.change(func() { s.Processes = append(s.Processes, p) }); err != nil {
		return err
	}
	_, err = stdin.Write([]byte("go\n"))
	return err
}

func (s *State) log(name string) string { return s.path("log", name+".log") }

// environment is what commands of a cluster get of this process's environment: nothing. A proxy, for one, would go into
// the manifests that kubeadm writes.
func environment(more ...string) []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}, more...)
}

// output runs a command to its end. The error has its last lines.
func output(ctx context.Context, stdin string, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env, c.Stdin, c.WaitDelay = environment(), strings.NewReader(stdin), time.Second
	c.SysProcAttr = apart(0) // the end of ctx is to end it, and not the same Ctrl-C a moment before
	var out bytes.Buffer
	var errs tail.Lines
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return out.String(), errs.Explain(fmt.Errorf("%s: %w", filepath.Base(command[0]), err))
	}
	return out.String(), nil
}

// alive tells whether it runs.
func (p Process) alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// startTime is when a process started, in ticks since boot. A zombie is none any more.
func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// proc(5): pid (comm) state ppid … with starttime as field 22. comm may hold anything, so count from its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" || string(fields[0]) == "X" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// bootID tells this boot of the machine from others.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // not Linux
	}
	return strings.TrimSpace(string(id))
}

// endProcesses kills what runs for a cluster. The end of a node's init is that of all in the node.
func (s *State) endProcesses(ctx context.Context) error {
	if s.Boot != bootID() {
		return nil
	}
	for _, p := range s.Processes {
		if !p.alive() {
			continue
		}
		process, err := os.FindProcess(p.PID)
		if err != nil {
			return err
		}
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end %s (process %d): %w", p.Name, p.PID, err)
		}
	}
	for _, p := range s.Processes {
		if err := until(ctx, 20*time.Millisecond, func() (bool, error) { return !p.alive(), nil }); err != nil {
			return fmt.Errorf("%s (process %d) does not end: %w", p.Name, p.PID, err)
		}
	}
	return nil
}

// until asks again and again, until the answer is yes.
func until(ctx context.Context, pause time.Duration, is func() (bool, error)) error {
	for {
		if yes, err := is(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// ErrNotReady is the error for a part of a cluster that did not become ready in time.
var ErrNotReady = errors.New("not ready")

// eventually asks again and again, as long as the cluster's processes live. An error of the question means no, and is told at
// the end.
func (s *State) eventually(ctx context.Context, is func(context.Context) (bool, error)) error {
	limit, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var last error
	err := until(limit, 250*time.Millisecond, func() (yes bool, err error) {
		yes, reason := is(limit)
		if reason != nil && limit.Err() == nil {
			last = reason
		}
		if yes {
			return true, nil
		}
		return false, s.checkAlive()
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w after %v", ErrNotReady, s.patience)
		if last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
	}
	return err
}

// checkAlive is an error if one of the cluster's processes has ended, with what it said last.
func (s *State) checkAlive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.Processes {
		if p.alive() {
			continue
		}
		var said tail.Lines
		if text, err := os.ReadFile(s.log(p.Name)); err == nil {
			_, _ = said.Write(text) // never fails
		}
		return said.Explain(fmt.Errorf("%s has ended: see %s", p.Name, s.log(p.Name)))
	}
	return nil
}
