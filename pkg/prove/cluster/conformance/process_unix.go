//go:build unix

package conformance

import "syscall"

// apart puts a program and its children into a process group of their own, which does not get the Ctrl-C that is meant for slipway.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func interrupt(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }

// end kills the rest of a program's group.
func end(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
