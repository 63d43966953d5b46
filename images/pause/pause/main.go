// Pause holds a pod's namespaces open: it is the first process of the pod's sandbox and does nothing until a signal ends it.
// If the containers of a pod share its process namespace, orphaned processes become its children, and it
// reaps them when they end.
//
// It replaces Kubernetes' pause, a C program. Since it is written in Go, it needs a megabyte or two more of memory, and has
// a few threads. Go's runtime handles the signals and passes them on by channel. Several children that end at once may
// raise only one signal, so it reaps all of them at each signal.
package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// version is the version of Kubernetes' pause that this program replaces. It is also the image's in release.yaml.
const version = "3.10.2"

// main does without package fmt, which would be a third of such a small program.
func main() {
	for _, arg := range os.Args[1:] {
		if strings.EqualFold(arg, "-v") {
			os.Stdout.WriteString("pause " + version + "\n")
			return
		}
	}
	if os.Getpid() != 1 {
		os.Stderr.WriteString("Warning: pause should be the first process\n")
	}
	// Room for one of each: a second signal of the same kind adds nothing while the first is waiting.
	ended, stop := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	collect() // children that ended before
	for {
		select {
		case <-ended:
			collect()
		case s := <-stop:
			os.Stderr.WriteString("Shutting down, got signal: " + s.String() + "\n")
			return
		}
	}
}

// collect reaps all children that have ended.
func collect() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}
