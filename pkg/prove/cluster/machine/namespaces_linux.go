package machine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces that a process can be started in. When the first process in new process namespaces ends, all others in there end, and their
// mounts and interfaces go with the last one.
const (
	AllNamespaces    = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID
	NetworkNamespace = unix.CLONE_NEWNET
)

// detached puts a process into new namespaces, out of reach of this terminal's signals.
func detached(namespaces uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
}
