//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Group puts the program, and all that it starts, into a process group of its own, which does not get the terminal's
// Ctrl-C. It must be called before the program starts. On Windows it does nothing.
func Group(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// SignalGroup sends a signal to all processes of the program's group. On Windows it kills the program. It returns
// [os.ErrProcessDone] if the program was not started.
func SignalGroup(cmd *exec.Cmd, sig syscall.Signal) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return syscall.Kill(-cmd.Process.Pid, sig)
}
