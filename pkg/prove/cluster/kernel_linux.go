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

// snapshotterFor returns the snapshotter by which containerd can keep the layers of images below a folder. The kernel stacks no
// overlay on another one, and in a container the folder is on one.
func snapshotterFor(dir string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}
