package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
)

// A Machine describes what figures depend on. The Go that compiles is pinned and the same everywhere.
type Machine struct {
	Platform string  `json:"platform"`
	Cores    int     `json:"cores"`
	Memory   int64   `json:"memory,omitempty"` // bytes; 0 if unknown
	Go       string  `json:"go"`               // of this command
	Load     float64 `json:"load,omitempty"`   // average of the minute before
}

func machine() Machine {
	m := Machine{Platform: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int64
		if n, _ := fmt.Sscanf(string(data), "MemTotal: %d kB", &kib); n == 1 {
			m.Memory = kib << 10
		}
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(data), &m.Load)
	}
	return m
}

// busy is the share of the processor time that others may take before a sample is doubtful.
const busy = 0.1

// ticks are processor times since boot, in the kernel's unit: of all processes, of this process and its children that have ended, and
// idle. All are 0 outside Linux.
type ticks struct{ everybody, own, nobody int64 }

func processors() ticks {
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ticks{}
	}
	return readTicks(all, own)
}

// readTicks reads /proc/stat and /proc/PID/stat, see proc(5).
func readTicks(all, own []byte) ticks {
	line, _, _ := bytes.Cut(all, []byte("\n"))
	cpu := numbers(bytes.TrimPrefix(line, []byte("cpu")))
	self := numbers(own[bytes.LastIndexByte(own, ')')+1:])
	if len(cpu) < 8 || len(self) < 15 {
		return ticks{}
	}
	// user nice system idle iowait irq softirq steal
	t := ticks{nobody: cpu[3] + cpu[4]}
	for i, n := range cpu[:8] {
		if i != 3 && i != 4 {
			t.everybody += n
		}
	}
	for _, n := range self[11:15] { // utime stime cutime cstime: fields 14 to 17 of the line, whose second is the name
		t.own += n
	}
	return t
}

func numbers(text []byte) []int64 {
	var all []int64
	for word := range bytes.FieldsSeq(text) {
		n, _ := strconv.ParseInt(string(word), 10, 64) // the state, a letter, is 0
		all = append(all, n)
	}
	return all
}

// others is the share of the machine that others took since before.
func (t ticks) others(before ticks) float64 {
	everybody, own, nobody := t.everybody-before.everybody, t.own-before.own, t.nobody-before.nobody
	if everybody+nobody <= 0 {
		return 0
	}
	return max(0, float64(everybody-own)/float64(everybody+nobody))
}
