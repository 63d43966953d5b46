package cluster

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces of a node. When its init ends, all its processes end, and its mounts and interfaces go with the last one.
const (
	nodeNamespaces   = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID
	switchNamespaces = unix.CLONE_NEWNET
)

// apart puts a process into new namespaces, out of reach of this terminal's signals.
func apart(namespaces uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
}
