//go:build !unix

package making

import "os"

// notifyResized does nothing: there is no such signal.
func notifyResized(chan<- os.Signal) {}
