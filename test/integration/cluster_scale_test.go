//go:build integration && linux

package integration

import (
	"strings"
	"testing"
	"time"
)

// takesHollowNodes requires that five hollow nodes join a cluster of two, which up was called for with these flags, that the checks of
// scale see when they stop, and that nothing of them is left.
func (tr tree) takesHollowNodes(t *testing.T, up []string) {
	start := time.Now()
	flags := append([]string{"cluster", "up", "--from", released(t), "--tests", testRelease(t)}, up...)
	hollow := func(count string) { tr.slipway(t, append(flags, "--hollow-nodes", count)...).ok(t) }
	nodes := func() string { return tr.kubectl(t, "get", "nodes", "-o", "name").ok(t).stdout }
	scale := []string{"scale/nodes", "scale/pods", "scale/memory"}
	without, _ := tr.verify(t, time.Minute, scale)
	for _, c := range without.Checks {
		if c.Group == "scale" && (c.Result != "skipped" || !strings.HasPrefix(c.Message, "needs hollow nodes")) {
			t.Errorf("without hollow nodes, %s is %s: %s", c.Name, c.Result, c.Message)
		}
	}
	hollow("5")
	if got := strings.Count(nodes(), "node/hollow-"); got != 5 {
		t.Errorf("there are %d hollow nodes: %s", got, nodes())
	}
	if s := tr.clusterStatus(t); len(s.Parts) != 3 || s.HollowNodes.Wanted != 5 || s.HollowNodes.Ready != 5 {
		t.Errorf("the status is %+v", s)
	}
	r, got := tr.verify(t, 2*time.Minute, append(scale, "controllers/daemonset-each-node", "scheduler/scoring"))
	for _, c := range r.Checks {
		if c.Result != "passed" || c.Group == "scale" && c.Message == "" {
			t.Errorf("%s/%s is %s: %s", c.Group, c.Name, c.Result, c.Message)
		}
		if c.Group == "scale" {
			t.Log(c.Message)
		}
	}
	if got.code != 0 {
		t.Error(got)
	}
	where := tr.kubectl(t, "get", "pods", "-n", "kube-system", "-l", "k8s-app!=kube-proxy", "-o", "wide").ok(t).stdout
	if strings.Contains(where, " hollow-") {
		t.Errorf("there are Pods on hollow nodes: %s", where)
	}
	tr.slipway(t, "cluster", "upgrade", "--to", released(t)).fails(t, 1, "has hollow nodes", "without --hollow-nodes")
	tr.red(t, stopped("kubemark"), 10*time.Second, "scale/nodes", "scale/pods")
	tr.red(t, stopped("kubelet"), 10*time.Second, "scale/memory")
	hollow("0")
	if got := nodes(); strings.Contains(got, "hollow") {
		t.Errorf("hollow nodes stay: %s", got)
	}
	t.Logf("in %v", time.Since(start))
}
