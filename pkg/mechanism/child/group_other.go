//go:build !unix

package child

import (
	"os/exec"
	"syscall"
)

// Group does nothing here.
func Group(*exec.Cmd) {}

// SignalGroup kills the program, whatever the signal is.
func SignalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
