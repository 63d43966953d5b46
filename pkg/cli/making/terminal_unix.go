//go:build unix

package making

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func notifyResized(c chan<- os.Signal) { signal.Notify(c, unix.SIGWINCH) }
