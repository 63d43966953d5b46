//go:build !unix

package conformance

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

func interrupt(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func end(int) {}
