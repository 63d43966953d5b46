package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsCollectedOnceThereIsMuch(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	collectLess()
	runtime.GC() // stands in for the collection at firstHeap
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		percent := debug.SetGCPercent(200)
		if percent == 200 {
			break
		}
		if debug.SetGCPercent(percent); time.Now().After(deadline) {
			t.Fatalf("after a collection, GOGC is %d", percent)
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("after a collection, GOMEMLIMIT is %d", limit)
	}
}
