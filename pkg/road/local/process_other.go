//go:build !linux

package local

import "os/exec"

// dieWithParent has no counterpart outside Linux: there the Go tool ends with its terminal.
func dieWithParent(*exec.Cmd) (unlock func()) { return func() {} }

// watchMemory measures nothing outside Linux.
func watchMemory(int) (stop func() int64) { return func() int64 { return 0 } }
