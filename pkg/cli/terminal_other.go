//go:build !unix

package cli

import "os"

// notifyResized notifies of nothing where there is no such signal.
func notifyResized(chan<- os.Signal) {}
