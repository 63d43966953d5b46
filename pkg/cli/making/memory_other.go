//go:build !linux

package making

// memory returns no bound: outside Linux, the number of processors bounds a run.
func memory() int64 { return 0 }
