//go:build !linux

package cluster

import "syscall"

// Clusters need Linux. Up returns an error before it uses these.
const (
	nodeNamespaces   = 0
	switchNamespaces = 0
)

func apart(uintptr) *syscall.SysProcAttr { return nil }
