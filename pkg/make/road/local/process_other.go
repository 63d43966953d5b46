//go:build !linux

package local

import "os"

// WatchMemory measures nothing outside Linux.
func WatchMemory(int) (stop func() int64) { return func() int64 { return 0 } }

// interrupt interrupts the Go command, which ends what it started.
func interrupt(root *os.Process) error { return root.Signal(os.Interrupt) }
