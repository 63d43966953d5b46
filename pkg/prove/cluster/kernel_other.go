//go:build !linux

package cluster

import "syscall"

// Clusters need Linux, which Up has looked for before these are used.
const (
	nodeNamespaces   = 0
	switchNamespaces = 0
)

func apart(uintptr) *syscall.SysProcAttr { return nil }

func snapshotterFor(string) (string, error) { return "", errNotLinux }
