package cluster

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces of a node. What ends its init ends all in it, and with the last process its mounts and interfaces go.
const (
	nodeNamespaces   = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID
	switchNamespaces = unix.CLONE_NEWNET
)

// apart keeps signals of this process's terminal from a process, and puts it into new namespaces.
func apart(namespaces uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: namespaces}
}

// snapshotterFor is how containerd can keep the layers of images below a folder. The kernel stacks no overlay on one, as
// there is in a container.
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
