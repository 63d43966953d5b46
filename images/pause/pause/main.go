// Pause holds a pod's namespaces open: it is the first process of the pod's sandbox and does nothing until it is told to end.
// Where the containers of a pod share its process namespace, the children that they leave behind become its own, and it
// collects them when they end.
//
// It takes the place of Kubernetes' pause, a C program, and differs in being Go: it holds a megabyte or two more of memory and has
// a few threads. Go's runtime handles the signals and hands them on by channel. Several children that end at once may
// raise one signal, so each one has it collect all there are.
package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// version is the one of Kubernetes' pause that this one takes the place of, as release.yaml says of its image.
const version = "3.10.2"

// It does without package fmt: that is a third of such a small program.
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
	// Room for one of each: a signal that finds its kind waiting already would only say the same again.
	ended, stop := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	collect() // those who ended before
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

// collect takes all children that have ended out of the list of processes.
func collect() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}
