package cli

import (
	"bytes"
	"fmt"
	"os"
)

// memory is how much of it actions may use at one time: what is available now, less some for everything else. Bytes.
func memory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0 // no bound
	}
	var kib int64
	for line := range bytes.Lines(data) {
		if n, _ := fmt.Sscanf(string(line), "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10 / 10 * 9
		}
	}
	return 0
}
