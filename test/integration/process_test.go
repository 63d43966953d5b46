//go:build integration

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process is a running command with a process group of its own, which gets the signals of a terminal's Ctrl-C or of a CI system
// that ends a job.
type process struct {
	cmd  *exec.Cmd
	out  string // file that standard output goes to
	err  string
	done chan struct{}
}

func (tr tree) start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		cmd:  command(tr.dir, tr.env, program, args...),
		out:  filepath.Join(dir, "stdout"),
		err:  filepath.Join(dir, "stderr"),
		done: make(chan struct{}),
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := os.Create(p.out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(p.err)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveWay(t, p.cmd)
	name := t.Name()
	go func() {
		_ = p.cmd.Wait() // ProcessState has the result
		spend(name, p.cmd.ProcessState)
		close(p.done)
	}()
	t.Cleanup(func() {
		p.signalGroup(syscall.SIGKILL)
		<-p.done
	})
	return p
}

// patience is the limit of every wait for a run.
const patience = 10 * time.Minute

// wait waits for the end of the process.
func (p *process) wait(t *testing.T) result {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("%s does not end", p.cmd)
	}
	return result{line: strings.Join(p.cmd.Args, " "), stdout: p.stdout(), stderr: readFile(p.err), code: p.cmd.ProcessState.ExitCode()}
}

// until waits until a condition holds, and reports whether it did so before the process ended.
func (p *process) until(t *testing.T, condition func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		select {
		case <-p.done:
			return condition()
		case <-time.After(500 * time.Microsecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: the condition does not hold in time\n%s", p.cmd, tail(p.stdout()))
		}
	}
	return true
}

// after waits some time, or for the end of the process.
func (p *process) after(d time.Duration) {
	select {
	case <-p.done:
	case <-time.After(d):
	}
}

// says returns a condition: standard output contains a text.
func (p *process) says(text string) func() bool {
	return func() bool { return strings.Contains(p.stdout(), text) }
}

func (p *process) stdout() string { return readFile(p.out) }

func readFile(name string) string {
	data, _ := os.ReadFile(name)
	return string(data)
}

func (p *process) group() int { return p.cmd.Process.Pid }

func (p *process) signalGroup(sig syscall.Signal) { _ = syscall.Kill(-p.group(), sig) }

// living lists the names of the processes in the group that have not ended.
func (p *process) living() []string {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var names []string
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it ended meanwhile
		}
		// proc(5): pid (comm) state ppid pgrp …; comm may hold anything.
		open, closed := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
		fields := strings.Fields(string(data[closed+1:]))
		if pgrp, err := strconv.Atoi(fields[2]); err == nil && pgrp == p.group() && fields[0] != "Z" && fields[0] != "X" {
			names = append(names, string(data[open+1:closed]))
		}
	}
	return names
}

// linking reports whether the Go linker runs.
func (p *process) linking() bool {
	for _, name := range p.living() {
		if name == "link" {
			return true
		}
	}
	return false
}

// gone requires that the group is empty after its leader has ended. The kernel takes a moment for a process whose parent has died.
func (p *process) gone(t *testing.T) {
	t.Helper()
	left := p.living()
	for deadline := time.Now().Add(5 * time.Second); len(left) > 0 && time.Now().Before(deadline); left = p.living() {
		time.Sleep(time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("%s has ended, but %q still run", p.cmd, left)
	}
}

// kill ends the whole group at once, and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signalGroup(syscall.SIGKILL)
	<-p.done
	for deadline := time.Now().Add(time.Minute); len(p.living()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q survive kill -9", p.living())
		}
	}
}
