//go:build !unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Group does nothing here.
func Group(*exec.Cmd) {}

// SignalGroup kills the program, whatever the signal is. It returns [os.ErrProcessDone] if the program was not started.
func SignalGroup(cmd *exec.Cmd, _ syscall.Signal) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return cmd.Process.Kill()
}
