// Package child runs programs that must not outlive this process, and ends them with all that they have started.
//
// What must never be in here: which programs these are, and programs that are meant to outlive this process.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Run runs cmd to its end, as cmd.Run does. If this process dies first, even by kill -9, the Linux kernel sends the
// program the signal orphaned. Other systems do not: there the program ends by itself or with its terminal.
//
// Run calls started, which may be nil, with the program's process ID. The error says so if the program was killed by
// another process, since that is most likely the kernel, out of memory.
func Run(cmd *exec.Cmd, orphaned syscall.Signal, started func(pid int)) error {
	// The kernel sends the signal when the thread that started the program ends, so that thread must not end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signalWhenOrphaned(cmd, orphaned)
	var canceled atomic.Bool
	if cancel := cmd.Cancel; cancel != nil {
		cmd.Cancel = func() error { canceled.Store(true); return cancel() }
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if started != nil {
		started(cmd.Process.Pid)
	}
	err := cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) && !canceled.Load() {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return fmt.Errorf("%w (killed: out of memory, perhaps)", err)
		}
	}
	return err
}

// WithoutStarts calls write while no child is being started. Until its program runs, a child has open what this process had open when it
// was forked, and Linux refuses to run a file that any process has open for writing ("text file busy", go.dev/issue/22315). A program that
// is to run at once is therefore opened, written and closed in here. Starts of children wait meanwhile; write must not start any.
func WithoutStarts(write func() error) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return write()
}

// Interrupt makes the end of cmd's context interrupt the program, as Ctrl-C does, and kill it only after grace.
func Interrupt(cmd *exec.Cmd, grace time.Duration) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
}
