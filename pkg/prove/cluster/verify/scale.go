package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/prove/cluster"
)

// What hollow nodes say of a cluster with many. Each check prints what it has measured.
var scaleChecks = group("scale", []string{scheduler, kubelet},
	Check{Name: "nodes", Skips: true, run: hollowNodes},
	Check{Name: "pods", Alone: true, Skips: true, Limit: 10 * time.Minute, run: hollowPods},
	Check{Name: "memory", Alone: true, Skips: true, run: hollowMemory},
)

// podsPerHollowNode is how many Pods the checks put on each hollow node.
const podsPerHollowNode = 10

// note sets what a check says when it has passed.
func (e *env) note(format string, args ...any) { e.message = fmt.Sprintf(format, args...) }

// needsHollow skips a check if the cluster has no hollow nodes.
func (e *env) needsHollow() {
	if e.HollowNodes == 0 {
		noError(skip("needs hollow nodes, and the cluster has none"))
	}
}

// hollow returns what a JSONPath finds in each hollow node, by the node's name. There must be as many as the cluster was given.
func (e *env) hollow(resource, path string, flags ...string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(e.get(resource, `{range .items[*]}{.metadata.name} `+path+`{"\n"}{end}`, flags...)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name] = value
	}
	if len(values) != e.HollowNodes {
		fail("there are %d %s of hollow nodes, want %d", len(values), resource, e.HollowNodes)
	}
	return values
}

// Every hollow node is ready, and stays so: its kubelet renews its lease.
func hollowNodes(e *env) {
	e.needsHollow()
	e.until(func() {
		for name, ready := range e.hollow("nodes", `{.status.conditions[?(@.type=="Ready")].status}`, "--selector="+cluster.HollowLabel) {
			if ready != "True" {
				fail("whether %s is ready is %q", name, ready)
			}
		}
	})
	renewals := func() map[string]string {
		all := map[string]string{}
		times := e.get("leases", `{range .items[*]}{.metadata.name} {.spec.renewTime}{"\n"}{end}`, "--namespace=kube-node-lease")
		for line := range strings.Lines(times) {
			name, at, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[name] = at
		}
		return all
	}
	names := e.hollow("nodes", "", "--selector="+cluster.HollowLabel)
	before := renewals()
	e.until(func() {
		now := renewals()
		for name := range names {
			if now[name] == "" || now[name] == before[name] {
				fail("the lease of %s is of %q", name, now[name])
			}
		}
	})
	e.note("%d are ready", e.HollowNodes)
}

// The Pods of a Deployment are scheduled to all hollow nodes, and start there.
func hollowPods(e *env) {
	e.needsHollow()
	count := podsPerHollowNode * e.HollowNodes
	start := time.Now()
	e.apply(workload, "kind", "Deployment", "spec", fmt.Sprintf("replicas: %d", count), "round", "1", "pod",
		"nodeSelector: {"+cluster.HollowLabel+`: "true"}`+"\n      tolerations: [{key: "+cluster.HollowLabel+", operator: Exists}]")
	var scheduled, started time.Duration
	pods := map[string]int{} // by node
	e.until(func() {
		clear(pods)
		placed, running := 0, 0
		for line := range strings.Lines(e.get("pods", `{range .items[*]}{.status.phase} {.spec.nodeName}{"\n"}{end}`)) {
			phase, node, _ := strings.Cut(strings.TrimSpace(line), " ")
			if node != "" {
				placed++
				pods[node]++
			}
			if phase == "Running" {
				running++
			}
		}
		if placed == count && scheduled == 0 {
			scheduled = time.Since(start)
		}
		if running < count {
			fail("of %d Pods, %d have a node and %d run", count, placed, running)
		}
		started = time.Since(start)
	})
	if len(pods) != e.HollowNodes {
		fail("%d Pods are on %d of %d hollow nodes: %v", count, len(pods), e.HollowNodes, pods)
	}
	perSecond := func(d time.Duration) float64 { return float64(count) / d.Seconds() }
	e.note("%d Pods: %.1f a second were scheduled, %.1f a second started", count, perSecond(scheduled), perSecond(started))
}

// summary is a part of what a kubelet says of its Pods.
type summary struct {
	Pods []struct {
		PodRef struct{ Namespace string }
		Memory struct{ WorkingSetBytes int64 }
	}
}

// Each hollow node uses memory, of which the kubelets beneath say how much.
func hollowMemory(e *env) {
	e.needsHollow()
	var used []int64
	e.until(func() {
		used = nil
		for _, n := range e.nodes {
			for _, p := range getJSON[summary](e, "/api/v1/nodes/"+n.Name+"/proxy/stats/summary").Pods {
				if p.PodRef.Namespace == cluster.HollowNamespace && p.Memory.WorkingSetBytes > 0 {
					used = append(used, p.Memory.WorkingSetBytes>>20)
				}
			}
		}
		if len(used) != e.HollowNodes {
			fail("the memory of %d hollow nodes is known, want %d", len(used), e.HollowNodes)
		}
	})
	slices.Sort(used)
	e.note("a hollow node uses %d MiB (%d to %d)", used[len(used)/2], used[0], used[len(used)-1])
}
