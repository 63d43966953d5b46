package verify

import (
	"fmt"
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

// A Pod that names its node runs there without the scheduler.
func nodeName(e *env) {
	e.apply(pod("web", "wait", spec("nodeName: "+e.lastNode()), spec("schedulerName: nobody")))
	e.ready("web")
	e.is("events", `{.items[?(@.reason=="Scheduled")].reason}`, "")
}

// A Pod with a node selector is pending until a node has the label, and runs there.
func nodeSelector(e *env) {
	e.waitsForLabel("nodeSelector: {" + e.label() + ": ssd}")
}

// So does a Pod whose node affinity requires the label.
func nodeAffinityRequired(e *env) {
	e.waitsForLabel("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
		"[{matchExpressions: [{key: " + e.label() + ", operator: In, values: [ssd, nvme]}]}]}}}")
}

func (e *env) waitsForLabel(field string) {
	e.apply(pod("web", "wait", spec(field)))
	e.waits("web", "didn't match Pod's node affinity/selector")
	e.labelNode(e.lastNode(), "ssd")
	e.on("web", e.lastNode())
}

// Pods that prefer a node run there although there are others, and a Pod that prefers what no node has runs anyway.
func nodeAffinityPreferred(e *env) {
	e.severalNodes("on the only node a Pod runs whatever it prefers")
	const field = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: " +
		"[{key: %s, operator: In, values: [%s]}]}}]}}"
	e.labelNode(e.lastNode(), "ssd")
	names := []string{"a", "b", "c", "d"} // more than chance would put there
	text := pod("tape", "wait", spec(fmt.Sprintf(field, e.label(), "tape")))
	for _, name := range names {
		text += pod(name, "wait", spec(fmt.Sprintf(field, e.label(), "ssd")))
	}
	e.apply(text)
	for _, name := range names {
		e.on(name, e.lastNode())
	}
	e.scheduled("tape")
}

// A Pod that requires to be near another is pending until that exists, and runs on its node.
func podAffinity(e *env) {
	e.apply(pod("web", "wait", spec("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}]}}")))
	e.waits("web", "didn't match pod affinity rules")
	e.apply(pod("cache", "wait"))
	e.on("web", e.scheduled("cache"))
}

// Pods that require to be apart run on different nodes, and one more is pending until one of them is gone.
func podAntiAffinity(e *env) {
	apart := func(name string) string {
		return pod(name, "wait", label("role: single"), spec("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {role: single}}}]}}"))
	}
	seen := map[string]string{}
	for n := range e.nodes {
		name := fmt.Sprintf("web-%d", n)
		e.apply(apart(name))
		node := e.scheduled(name)
		if other := seen[node]; other != "" {
			fail("pods %s and %s are both on %s", other, name, node)
		}
		seen[node] = name
	}
	e.apply(apart("more"))
	e.waits("more", "didn't match pod anti-affinity rules")
	e.kubectl("delete", "pod/web-0")
	e.scheduled("more")
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

// Where no other place is left, a Pod of higher priority replaces one of lower priority, and one of equal priority is pending.
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
