package making

import (
	"bytes"
	"fmt"
	"os"
)

// memory returns how many bytes of memory actions may use at a time: what is available now, less some for everything else. It is 0, no
// bound, where the kernel does not say: outside Linux, the number of processors bounds a run.
func memory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	for line := range bytes.Lines(data) {
		if n, _ := fmt.Sscanf(string(line), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10 / 10 * 9
		}
	}
	return 0
}
