package transfer

import (
	"os/exec"
	"runtime"
	"syscall"
)

// orphanless makes cmd end with this process, however that ends: the kernel sees to it. It means the thread that started
// cmd, so that thread has to stay until unlock. A process group of its own keeps the terminal's Ctrl-C from cmd: we are
// told, and end it, and it does not look as if it had failed by itself.
func orphanless(cmd *exec.Cmd) (unlock func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it removes its temporary files
	return runtime.UnlockOSThread
}
