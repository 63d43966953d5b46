//go:build unix

package debian

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command's process and all that it starts form a group of their own.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks the whole group to end, and killGroup does not ask.
func endGroup(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }

func killGroup(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // there may be none left
