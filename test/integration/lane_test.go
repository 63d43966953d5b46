//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A lane is a group of tests that run one after another, in the order of the sources, while tests of other lanes run. Tests in no
// lane come before all of them, one at a time: they share a checkout, which nothing changes any more once lanes begin.
//
// Two processors can serve three lanes because none of them keeps one busy. Clusters wait for Pods, containers for the engine.
type lane struct {
	mu   sync.Mutex
	last chan struct{} // closed at the end of the test that joined last
}

var (
	clusterLane   lane // tests that boot clusters or use the release with the test set, or compare what is on the machine with what was
	containerLane lane // tests of the container road, of a release's documents, and others, to make the lanes equally long
	cloneLane     lane // tests in clones of their own, which only read the shared release: Bazel's, and others that take long
)

// lanes has the tests that joined a lane.
var lanes sync.Map

// join makes the test wait until all tests outside of lanes and the earlier ones of its lane have ended. A test joins only one lane,
// the first that it asks for. Tests call it before they make anything; some indirectly, by needNodes, needEngine or needBazel.
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
		lanes.Delete(t.Name())
		close(mine)
	})
	t.Parallel()
	if before != nil {
		start := time.Now()
		<-before
		t.Attr(waited, fmt.Sprintf("%.2f", time.Since(start).Seconds()))
	}
}

// giveWay lowers the priority of a command that has started, unless its test is in the lane of clusters: probes, leases and timeouts of a
// cluster are meant for machines that are not busy with something else. (.ci/run does it to the engine's containers.)
func giveWay(t *testing.T, c *exec.Cmd) {
	name, _, _ := strings.Cut(t.Name(), "/")
	if l, joined := lanes.Load(name); joined && l != &clusterLane {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, 10) // it may have ended
	}
}

// waited is an attribute of a test: the seconds that its duration has from waiting for other tests. The table of test/slowest
// subtracts them.
const waited = "waited"
