package bazel

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel interrupt cmd's process when this one ends, however it ends: Bazel's server then stops
// building. The kernel means the thread that started it, so that thread has to stay until unlock.
func dieWithParent(cmd *exec.Cmd) (unlock func()) {
	runtime.LockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	return runtime.UnlockOSThread
}
