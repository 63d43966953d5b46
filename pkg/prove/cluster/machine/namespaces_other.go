//go:build !linux

package machine

import "syscall"

// Clusters need Linux. Nothing is started elsewhere.
const (
	AllNamespaces    = 0
	NetworkNamespace = 0
)

func detached(uintptr) *syscall.SysProcAttr { return nil }
