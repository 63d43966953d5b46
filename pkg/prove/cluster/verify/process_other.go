//go:build !linux

package verify

import (
	"errors"
	"os"
)

var errNotLinux = errors.New("nodes are on Linux only")

func stop([]*os.Process) error                              { return errNotLinux }
func resume([]*os.Process) error                            { return errNotLinux }
func (e *env) processes(_, _ string) ([]*os.Process, error) { return nil, errNotLinux }
