//go:build !linux

package verify

import "os"

const notLinux = "nodes are on Linux only"

func stop([]*os.Process)   { fail(notLinux) }
func resume([]*os.Process) { fail(notLinux) }

func fileSystemSize(string) int64 {
	fail(notLinux)
	return 0
}

func (e *env) processes(_, _ string) []*os.Process {
	fail(notLinux)
	return nil
}
