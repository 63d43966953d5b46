package verify

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// sleep starts a process that the end of the test ends.
func sleep(t *testing.T) *os.Process {
	t.Helper()
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process
}

func TestHandlesAreOfTheListedProcesses(t *testing.T) {
	t.Parallel()
	stays, later := sleep(t), sleep(t)
	const ended = 1 << 30 // no process has this PID: it stands for one that has ended, and whose PID the later process has
	listed := []int{ended, stays.Pid}
	found, err := handles(func() ([]int, error) { return slices.Clone(listed), nil }, func(pid int) (*os.Process, error) {
		if pid == ended {
			listed = listed[1:]
			return os.FindProcess(later.Pid)
		}
		return os.FindProcess(pid)
	})
	if err != nil || len(found) != 1 || found[0].Pid != stays.Pid {
		t.Errorf("handles of %v, %v, want only one of %d: not of %d", found, err, stays.Pid, later.Pid)
	}
}

func TestSignalsToEndedProcessesAreNoError(t *testing.T) {
	t.Parallel()
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	handle, err := os.FindProcess(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := signal([]*os.Process{handle}, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
}
