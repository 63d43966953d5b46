package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Process is a process of this machine, which this process may not have started.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in ticks since boot
}

// errRuns is what remains true of a process that does not end.
var errRuns = errors.New("it still runs")

// Alive reports whether the process runs.
func (p Process) Alive() bool {
	start, err := startTime(p.PID)
	return err == nil && start == p.Start
}

// Kill sends SIGKILL to the process, unless it has ended.
func (p Process) Kill() error { return p.signal(syscall.SIGKILL, os.FindProcess) }

// Await waits until the process has ended.
func (p Process) Await(ctx context.Context) error {
	return Retry(ctx, 10*time.Millisecond, func() error {
		if p.Alive() {
			return errRuns
		}
		return nil
	})
}

// End asks the process to end. Kubernetes' programs end at once when they are asked again; others are killed.
func (p Process) End(ctx context.Context) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.signal(sig, os.FindProcess); err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := p.Await(limit)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return errRuns
}

// signal sends a signal to the process, unless it has ended. Find is [os.FindProcess]. Its handle is taken before the process is looked
// at: it stays that of the process if another process gets the PID meanwhile.
func (p Process) signal(sig os.Signal, find func(pid int) (*os.Process, error)) error {
	process, err := find(p.PID)
	if err != nil {
		return fmt.Errorf("end process %d: %w", p.PID, err)
	}
	defer func() { _ = process.Release() }()
	if !p.Alive() {
		return nil
	}
	if err := process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end process %d: %w", p.PID, err)
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

// BootID identifies this boot of the machine. It is empty on systems other than Linux.
func BootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
