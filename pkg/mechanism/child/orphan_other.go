//go:build !linux

package child

import (
	"os/exec"
	"syscall"
)

func signalWhenOrphaned(*exec.Cmd, syscall.Signal) {}
