//go:build unix

package child_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/child"
)

const parentArg = "be the parent of a child"

// TestMain is also the process that dies before its child: the child's output is this process's, so its end can be read.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != parentArg {
		os.Exit(m.Run())
	}
	// Threads of a dying process are its children's parent in turn, so a child may get the signal of each.
	cmd := exec.Command("sh", "-c", `trap 'trap "" INT; echo interrupted; exit' INT; echo $$; read -r line`)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	_ = child.Run(cmd, syscall.SIGINT, nil)
}

func TestOrphanGetsTheSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only the Linux kernel signals orphans")
	}
	parent := exec.Command(os.Args[0], parentArg)
	stdin, err := parent.StdinPipe() // the child waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r := bufio.NewReader(out)
	if pid, err := r.ReadString('\n'); err != nil || pid == "" {
		t.Fatalf("%q, %v; want the child's process ID", pid, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "interrupted\n" {
		t.Errorf("%q, %v; want the child to be interrupted", rest, err)
	}
}

func TestKilledProgramNamesMemory(t *testing.T) {
	t.Parallel()
	pid := 0
	err := child.Run(exec.Command("sh", "-c", "kill -9 $$"), syscall.SIGKILL, func(p int) { pid = p })
	if err == nil || !strings.Contains(err.Error(), "out of memory, perhaps") || pid == 0 {
		t.Errorf("process %d: %v", pid, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = child.Run(exec.CommandContext(ctx, "sh", "-c", "read -r line"), syscall.SIGKILL, func(int) { cancel() })
	if err == nil || strings.Contains(err.Error(), "memory") {
		t.Errorf("canceled: %v", err)
	}
	if err := child.Run(exec.Command("false"), syscall.SIGKILL, nil); err == nil || strings.Contains(err.Error(), "memory") {
		t.Errorf("false: %v", err)
	}
	if err := child.Run(exec.Command("no-such-program"), syscall.SIGKILL, nil); err == nil {
		t.Error("a program that does not exist ran")
	}
}

// until runs a script whose first line of output cancels its context, and returns the rest of the output.
func until(t *testing.T, setup func(*exec.Cmd), script string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	stdin, keep, err := os.Pipe() // the script waits for it
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	defer stdin.Close()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdin, cmd.Stdout = stdin, w
	setup(cmd)
	rest := make(chan string)
	go func() {
		r := bufio.NewReader(out)
		_, _ = r.ReadString('\n')
		cancel()
		text, _ := io.ReadAll(r)
		rest <- string(text)
	}()
	err = child.Run(cmd, syscall.SIGKILL, nil)
	w.Close()
	return <-rest, err
}

func TestInterruptLetsTheProgramEnd(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo interrupted; exit 3' INT; echo ready; read -r line`
	text, err := until(t, func(c *exec.Cmd) { child.Interrupt(c, time.Minute) }, script)
	if text != "interrupted\n" || err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%q, %v", text, err)
	}
	text, err = until(t, func(c *exec.Cmd) { child.Interrupt(c, time.Millisecond) }, `trap '' INT; echo ready; read -r line`)
	if text != "" || err == nil || strings.Contains(err.Error(), "memory") {
		t.Errorf("a program that ignores it: %q, %v", text, err)
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo outer' TERM; (trap 'echo inner; exit' TERM; echo ready; read -r line); exit 4`
	group := 0
	text, err := until(t, func(c *exec.Cmd) {
		child.Group(c)
		c.Cancel = func() error {
			group, _ = syscall.Getpgid(c.Process.Pid)
			if group != c.Process.Pid {
				return errGroup(group)
			}
			return child.SignalGroup(c, syscall.SIGTERM)
		}
	}, script)
	if !strings.Contains(text, "inner\n") || err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestSignalToAProgramThatDidNotStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exit")
	child.Group(cmd)
	if err := child.Run(cmd, syscall.SIGKILL, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v", err)
	}
	if err := child.SignalGroup(cmd, syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal: %v", err)
	}
}

type errGroup int

func (e errGroup) Error() string { return "in group " + strconv.Itoa(int(e)) }
