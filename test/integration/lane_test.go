//go:build integration

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A lane is a group of tests that run one after another, in the order of the sources, while tests of other lanes run.
//
// Two processors can serve the lanes because clusters mostly wait for Pods, and containers for the engine. See giveWay.
type lane struct {
	after   []*lane       // that have to end before the first test of this one begins
	reserve time.Duration // how much longer a test of this one may take than others
	mu      sync.Mutex
	last    chan struct{} // closed at the end of the test that joined last
}

var (
	clusterLane   lane // tests that boot clusters or use the release with the test set, or compare what is on the machine with what was
	containerLane lane // tests of the container road, and of signatures, documents and shared caches
	cloneLane     lane // tests in clones of their own that take long: releases elsewhere, patches
	treeLane      lane // tests of a release where it was made, and short ones in clones

	// Tests that compile much where caches are cold: Bazel's, and those of distributions, examples and lints. If there is no time for all
	// tests, it is these that are left out. While clusters wait, they use the processors.
	lateLane = lane{after: []*lane{&containerLane, &cloneLane, &treeLane}, reserve: 20 * time.Minute}
)

// lanes has the tests that joined a lane.
var lanes sync.Map

// join makes the test wait until the earlier ones of its lane have ended. A test joins only one lane, the first that it asks for. Tests
// call it before they make anything; some indirectly, by needNodes, needEngine or needBazel. Those that did not are in treeLane, which
// baseline and clone join.
func (l *lane) join(t *testing.T) {
	t.Helper()
	if strings.Contains(t.Name(), "/") {
		return // its test has joined
	}
	if _, joined := lanes.LoadOrStore(t.Name(), l); joined {
		return
	}
	mine := make(chan struct{})
	l.mu.Lock()
	before := l.last
	l.last = mine
	l.mu.Unlock()
	t.Cleanup(func() {
		t.Attr(processor, fmt.Sprintf("%.1f", spentBy(t.Name()).Seconds()))
		t.Attr(free, fmt.Sprintf("%.1f", freeSpace()))
		lanes.Delete(t.Name())
		close(mine)
	})
	t.Parallel()
	ends := []chan struct{}{before}
	for _, other := range l.after { // which all of its tests have joined: t.Parallel returns when every test has called it
		other.mu.Lock()
		ends = append(ends, other.last)
		other.mu.Unlock()
	}
	start := time.Now()
	for _, end := range ends {
		if end != nil {
			<-end
		}
	}
	t.Attr(waited, fmt.Sprintf("%.2f", time.Since(start).Seconds()))
	if !soak && time.Now().Add(l.reserve).After(timeUp()) {
		t.Skip("no time was left for " + t.Name() + " before SLIPWAY_TESTS_UNTIL: run it by its name, or all tests on a faster machine")
	}
}

// timeUp returns the time after which no test begins: a run that is cut off says nothing at all. $SLIPWAY_TESTS_UNTIL has it, in seconds
// since 1970.
var timeUp = sync.OnceValue(func() time.Time {
	text := os.Getenv("SLIPWAY_TESTS_UNTIL")
	if text == "" {
		return time.Now().Add(24 * time.Hour)
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("SLIPWAY_TESTS_UNTIL: " + err.Error())
	}
	return time.Unix(seconds, 0)
})

// giveWay lowers the priority of a command that has started, unless its test is in the lane of clusters: probes, leases and timeouts of a
// cluster are meant for machines that are not busy with something else. (.ci/run does it to the engine's containers.)
func giveWay(t *testing.T, c *exec.Cmd) {
	if joined(t) != &clusterLane {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, low) // it may have ended
	}
}

// low is the priority of what computes while clusters wait.
const low = 15

// joined returns the lane that a test, or the test of a subtest, has joined, or nil.
func joined(t *testing.T) *lane {
	name, _, _ := strings.Cut(t.Name(), "/")
	l, _ := lanes.Load(name)
	in, _ := l.(*lane)
	return in
}

// Attributes of a test, which the table of test/slowest reads.
const (
	waited    = "waited"    // the seconds that its duration has from waiting for other tests
	processor = "processor" // the seconds of processor time of the commands that it ran
	free      = "free"      // the gigabytes of disk space that are left at its end
)

// freeSpace returns how many gigabytes of disk space are left where tests work, or 0 if that cannot be told.
func freeSpace() float64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(workspace, &stat); err != nil {
		return 0
	}
	return float64(stat.Bavail) * float64(stat.Bsize) / 1e9
}
