package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// waitForGo is a script that waits until its process is in the state, and ends if the process that started it dies before.
const waitForGo = `read -r go && exec "$@" </dev/null`

// start starts a command that outlives this process, and writes it to the state before the command does anything.
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
	go func() { _ = c.Wait() }() // it must not remain as a zombie while this process lives
	defer stdin.Close()
	p.PID = c.Process.Pid
	if p.Start, err = startTime(p.PID); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := s.change(func() { s.Processes = put(s.Processes, p) }); err != nil {
		return err
	}
	_, err = stdin.Write([]byte("go\n"))
	return err
}

func (s *State) log(name string) string { return s.path("log", name+".log") }

// systemPath is where the system's programs are looked for.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the environment of a cluster's commands. It has nothing of this process's environment: kubeadm, for example,
// would write a proxy into its manifests.
func environment(more ...string) []string {
	return append([]string{"PATH=" + systemPath, "HOME=/root", "LANG=C.UTF-8"}, more...)
}

// output runs a command and returns its output. The error has the last lines that it wrote. The command does not outlive this process:
// a kubectl that waits would, long after [Down] has removed the cluster.
func output(ctx context.Context, stdin string, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env, c.Stdin, c.WaitDelay = environment(), strings.NewReader(stdin), time.Second
	c.SysProcAttr = apart(0) // ctx ends it, and not Ctrl-C a moment before
	var out bytes.Buffer
	var errs tail.Lines
	c.Stdout, c.Stderr = &out, &errs
	if err := child.Run(c, syscall.SIGKILL, nil); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return out.String(), errs.Explain(fmt.Errorf("%s: %w", filepath.Base(command[0]), err))
	}
	return out.String(), nil
}

// alive reports whether the process runs.
func (p Process) alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// signal sends a signal to the process, unless it has ended. Find is [os.FindProcess]. Its handle is taken before the process is looked
// at: it stays that of the process if another process gets the PID meanwhile.
func (p Process) signal(sig os.Signal, find func(pid int) (*os.Process, error)) error {
	process, err := find(p.PID)
	if err != nil {
		return fmt.Errorf("end %s (process %d): %w", p.Name, p.PID, err)
	}
	defer func() { _ = process.Release() }()
	if !p.alive() {
		return nil
	}
	if err := process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s (process %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// startTime returns when a process started, in ticks since boot. A zombie has ended.
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

// bootID identifies this boot of the machine.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // not Linux
	}
	return strings.TrimSpace(string(id))
}

// endProcesses kills the processes of a cluster. When the init of a node ends, everything in the node ends.
func (s *State) endProcesses(ctx context.Context) error {
	if s.Boot != bootID() {
		return nil
	}
	for _, p := range s.Processes {
		if err := p.signal(os.Kill, os.FindProcess); err != nil {
			return err
		}
	}
	for _, p := range s.Processes {
		if err := until(ctx, 20*time.Millisecond, func() (bool, error) { return !p.alive(), nil }); err != nil {
			return fmt.Errorf("%s (process %d) does not end: %w", p.Name, p.PID, err)
		}
	}
	return nil
}

// until asks repeatedly until the answer is yes.
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

// eventually asks repeatedly while the cluster's processes live. An error of the question means no; the last one is part of the
// error that is returned.
func (s *State) eventually(ctx context.Context, is func(context.Context) (bool, error)) error {
	return s.eventuallyEvery(ctx, 250*time.Millisecond, is)
}

// eventuallyEvery asks as often as that.
func (s *State) eventuallyEvery(ctx context.Context, pause time.Duration, is func(context.Context) (bool, error)) error {
	return s.eventuallyWhile(ctx, pause, s.checkAlive, is)
}

// eventuallyWhile asks as often as that, while alive returns no error.
func (s *State) eventuallyWhile(ctx context.Context, pause time.Duration, alive func() error,
	is func(context.Context) (bool, error)) error {
	limit, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var last error
	err := until(limit, pause, func() (yes bool, err error) {
		yes, reason := is(limit)
		if reason != nil && limit.Err() == nil {
			last = reason
		}
		if yes {
			return true, nil
		}
		return false, alive()
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("%w: waited for %v", ErrNotReady, s.patience)
		if last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
	}
	return err
}

// Ended returns an error if one of the processes of a cluster that was ready has ended, unless its program is being replaced.
func (s *State) Ended() error {
	if !s.Ready || len(s.Unsettled) > 0 {
		return nil
	}
	return s.checkAlive()
}

// checkAlive returns an error if one of the cluster's processes has ended, with the last lines of its output.
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

// checkProcess returns an error if a process has ended.
func (s *State) checkProcess(p Process) error {
	if p.alive() {
		return nil
	}
	var said tail.Lines
	if text, err := os.ReadFile(s.log(p.Name)); err == nil {
		_, _ = said.Write(text) // never fails
	}
	return said.Explain(fmt.Errorf("%s has ended: see %s", p.Name, s.log(p.Name)))
}
