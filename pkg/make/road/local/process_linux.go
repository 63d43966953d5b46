package local

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// WatchMemory measures four times a second how much memory of a process and its descendants is resident. The function that it
// returns stops this, and returns the maximum, in bytes.
func WatchMemory(pid int) (stop func() int64) {
	quit, result := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		var peak int64
		for {
			select {
			case <-quit:
				result <- peak
				return
			case <-tick.C:
				peak = max(peak, resident(pid))
			}
		}
	}()
	return func() int64 { close(quit); return <-result }
}

// resident sums the resident memory of pid and its descendants, in bytes. Pages that they share count
// more than once, so it is an upper bound.
func resident(root int) int64 {
	var pages int64
	for _, p := range family(root) {
		pages += p.pages
	}
	return pages * int64(os.Getpagesize())
}

// interrupt interrupts a process and its descendants. The Go command alone would wait for the links that it started, or leave them
// behind if it is killed first.
func interrupt(root *os.Process) error {
	for pid := range family(root.Pid) {
		if pid == root.Pid {
			continue
		}
		// The handle comes first: only a process that is a descendant afterwards gets the signal.
		if p, err := os.FindProcess(pid); err == nil {
			if _, member := family(root.Pid)[pid]; member {
				_ = p.Signal(os.Interrupt) // it may have ended meanwhile
			}
			_ = p.Release()
		}
	}
	return root.Signal(os.Interrupt)
}

// A process is what /proc says about a process.
type process struct {
	parent int
	pages  int64 // resident
}

// family returns a process and its descendants, by pid, from /proc.
func family(root int) map[int]process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		// proc(5): pid (comm) state ppid … with rss as field 24. comm may hold anything, so count from its end.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 22 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		pages, _ := strconv.ParseInt(string(fields[21]), 10, 64)
		all[pid] = process{parent, pages}
	}
	members := map[int]process{}
	for pid, p := range all {
		for at := pid; at > 1; at = all[at].parent {
			if at == root {
				members[pid] = p
				break
			}
		}
	}
	return members
}
