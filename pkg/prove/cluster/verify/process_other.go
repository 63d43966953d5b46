//go:build !linux

package verify

import (
	"errors"
	"syscall"
)

var errNotLinux = errors.New("nodes are on Linux only")

func apart() *syscall.SysProcAttr { return nil }

func stop([]int) error                              { return errNotLinux }
func resume([]int) error                            { return errNotLinux }
func (e *env) processes(_, _ string) ([]int, error) { return nil, errNotLinux }
