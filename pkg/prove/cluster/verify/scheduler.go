package verify

import (
	"fmt"
	"slices"
	"strings"
)

// Where the scheduler puts Pods, and why it leaves them pending.
var schedulerChecks = group("scheduler", []string{scheduler, kubelet},
	Check{Name: "node-name", run: nodeName},
	Check{Name: "node-selector", run: nodeSelector},
	Check{Name: "node-affinity-required", run: nodeAffinityRequired},
	Check{Name: "node-affinity-preferred", Skips: true, run: nodeAffinityPreferred},
	Check{Name: "node-affinity-operators", run: affinityOperators},
	Check{Name: "pod-affinity", run: podAffinity},
	Check{Name: "pod-anti-affinity", run: podAntiAffinity},
	Check{Name: "pod-affinity-preferred", Skips: true, run: podAffinityPreferred},
	Check{Name: "topology-spread", Skips: true, run: topologySpread},
	Check{Name: "scoring", Skips: true, run: scoring},
	Check{Name: "resource-fit", run: resourceFit},
	Check{Name: "out-of-cpu", run: outOfCPU},
	Check{Name: "missing-node", Long: true, run: missingNode},
	Check{Name: "preemption", run: preemption},
	Check{Name: "taints", Alone: true, run: taints},
	Check{Name: "taint-eviction", Alone: true, run: taintEviction},
)

// label returns a name, unique to the check, for what it puts on nodes.
func (e *env) label() string { return "verify.slipway.build/" + e.namespace }

// labelNode labels a node until the check ends.
func (e *env) labelNode(node, value string) {
	e.cleanup(func() { e.kubectl("label", "node", node, e.label()+"-") })
	e.kubectl("label", "node", node, e.label()+"="+value)
}

// waits requires that the scheduler finds no node for a Pod, for the given reason.
func (e *env) waits(pod, reason string) {
	e.wait(`jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}=Unschedulable`, "pod/"+pod)
	said := e.get("pod/"+pod, `{.status.conditions[?(@.type=="PodScheduled")].message}`)
	if !strings.Contains(said, reason) {
		fail("pod %s is pending because of %q, want %q", pod, said, reason)
	}
}

// scheduled waits until a Pod has a node, and returns it.
func (e *env) scheduled(pod string) string {
	e.wait("condition=PodScheduled", "pod/"+pod)
	return e.get("pod/"+pod, "{.spec.nodeName}")
}

// on requires that a Pod is scheduled to a node.
func (e *env) on(pod, want string) {
	if node := e.scheduled(pod); node != want {
		fail("pod %s is on %s, want %s", pod, node, want)
	}
}

// elsewhere requires that a Pod is scheduled, and not to a node.
func (e *env) elsewhere(pod, not string) {
	if node := e.scheduled(pod); node == not {
		fail("pod %s is on %s, want another node", pod, node)
	}
}

// A Pod that names its node runs there without the scheduler.
func nodeName(e *env) {
	e.apply(pod("web", "wait", spec("nodeName: "+e.lastNode())))
	e.ready("web")
	e.is("pod/web", "{.spec.nodeName}", e.lastNode())
	e.becomes("events", `{.items[?(@.reason=="Started")].reason}{.items[?(@.reason=="Scheduled")].reason}`, "Started")
}

// A Pod that names a node which does not exist is deleted.
func missingNode(e *env) {
	e.apply(pod("lost", "wait", spec("nodeName: missing-"+e.namespace)))
	e.wait("delete", "pod/lost")
}

// A Pod that requests more than any node has is pending, and the scheduler says which resource is insufficient.
func resourceFit(e *env) {
	e.apply(pod("processor", "wait", requests("cpu", "1000")) + pod("memory", "wait", requests("memory", "100Ti")) +
		pod("small", "wait", requests("memory", "8Mi")))
	for pod, reason := range map[string]string{"processor": "Insufficient cpu", "memory": "Insufficient memory"} {
		e.waits(pod, reason)
	}
	e.scheduled("small")
}

// A kubelet refuses a Pod that its node has no room for, even if the scheduler was not asked.
func outOfCPU(e *env) {
	e.apply(pod("large", "wait", spec("nodeName: "+e.lastNode()), requests("cpu", "1000")))
	e.wait("jsonpath={.status.phase}=Failed", "pod/large")
	e.is("pod/large", "{.status.reason}", "OutOfcpu")
}

// The scheduler prefers the node with less memory requested.
func scoring(e *env) {
	e.severalNodes("the only node has the highest score")
	for _, full := range []string{e.nodes[0].Name, e.lastNode()} {
		heavy, light := "heavy-on-"+full, "light-beside-"+full
		most := e.mostMemory(full)
		here := spec("nodeSelector: {kubernetes.io/hostname: " + full + "}")
		e.apply(pod(heavy, "wait", here, container("resources: {requests: {memory: "+most+"}}")))
		e.on(heavy, full)
		e.apply(pod(light, "wait", container("resources: {requests: {memory: 16Mi}}")))
		e.elsewhere(light, full)
		e.kubectl("delete", "--now", "pod/"+heavy, "pod/"+light)
	}
}

// mostMemory returns three quarters of a node's memory.
func (e *env) mostMemory(node string) string {
	text := e.get("node/"+node, "{.status.allocatable.memory}")
	var kib int64
	if _, err := fmt.Sscanf(text, "%dKi", &kib); err != nil {
		fail("node %s has memory %q: %w", node, text, err)
	}
	return fmt.Sprintf("%dKi", kib*3/4)
}

// If there is no room left, a Pod of higher priority replaces one of lower priority, and one of equal priority is pending.
func preemption(e *env) {
	resource := e.label()
	e.advertise(e.lastNode(), resource)
	e.cleanup(func() {
		e.kubectl("delete", "priorityclass", e.namespace+"-low", e.namespace+"-high", "--ignore-not-found")
	})
	e.apply(`
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $namespace-low}, value: 10}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $namespace-high}, value: 1000}
`)
	low, high := spec("priorityClassName: "+e.namespace+"-low"), spec("priorityClassName: "+e.namespace+"-high")
	one := requests(resource, "1")
	e.apply(pod("low", "wait", one, low))
	e.on("low", e.lastNode())
	e.apply(pod("equal", "wait", one, low))
	e.waits("equal", "Insufficient "+resource)
	e.apply(pod("high", "wait", one, high))
	e.on("high", e.lastNode())
	e.wait("delete", "pod/low")
}

// advertise gives a node one unit of a resource until the check ends.
func (e *env) advertise(node, resource string) {
	patch := func(op, value string) {
		path := strings.ReplaceAll(resource, "/", "~1")
		one := `{"op": "` + op + `", "path": "/status/%s/` + path + `"` + value + `}`
		e.kubectl("patch", "node", node, "--subresource=status", "--type=json",
			"--patch=["+fmt.Sprintf(one, "capacity")+", "+fmt.Sprintf(one, "allocatable")+"]")
	}
	e.cleanup(func() { patch("remove", "") })
	patch("add", `, "value": "1"`)
}

// While all nodes are tainted, only Pods that tolerate the taint are scheduled.
func taints(e *env) {
	untaint := func() {
		e.kubectl("taint", "nodes", "--all", e.label()+"-")
	}
	tainted := true
	e.cleanup(func() {
		if tainted {
			untaint()
		}
	})
	e.kubectl("taint", "nodes", "--all", e.label()+"=gpu:NoSchedule")
	tolerates := func(value string) edit {
		return spec("tolerations: [{key: " + e.label() + ", operator: Equal, value: " + value + ", effect: NoSchedule}]")
	}
	e.apply(pod("plain", "wait") + pod("other", "wait", tolerates("other")) + pod("tolerant", "wait", tolerates("gpu")))
	e.scheduled("tolerant")
	for _, pod := range []string{"plain", "other"} {
		e.waits(pod, "had untolerated taint")
	}
	untaint()
	tainted = false
	for _, pod := range []string{"plain", "other"} {
		e.scheduled(pod)
	}
}

// A taint evicts the Pods of a node that do not tolerate it, and later those that tolerate it for some seconds.
func taintEviction(e *env) {
	node, key := e.lastNode(), e.label()
	tolerates := func(seconds string) edit {
		return spec("tolerations: [{key: " + key + ", operator: Exists, effect: NoExecute" + seconds + "}]")
	}
	here := spec("nodeName: " + node)
	brief := spec("terminationGracePeriodSeconds: 1")
	e.apply(pod("plain", "wait", here, brief) + pod("patient", "wait", here, brief, tolerates(", tolerationSeconds: 6")) +
		pod("tolerant", "wait", here, brief, tolerates("")))
	e.ready("plain", "patient", "tolerant")
	pods := e.watch("/api/v1", "pods")
	e.cleanup(func() {
		e.kubectl("taint", "node", node, key+"-")
		e.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s") // its Pods may have been evicted
	})
	e.kubectl("taint", "node", node, key+"=gone:NoExecute")
	e.wait("delete", "pod/plain", "pod/patient")
	if gone := pods.deleted(); !slices.Equal(gone, []string{"plain", "patient"}) {
		fail("the taint has evicted %q, want plain and later patient", gone)
	}
	e.is("pod/tolerant", "{.status.phase}", "Running")
}
