//go:build !linux

package local

import "os"

// WatchMemory measures nothing outside Linux.
func WatchMemory(int) (stop func() int64) { return func() int64 { return 0 } }

// interrupt leaves it to the Go tool to end what it has started.
func interrupt(root *os.Process) error { return root.Signal(os.Interrupt) }
