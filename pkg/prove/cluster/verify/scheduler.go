package verify

import (
	"context"
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
func (e *env) labelNode(ctx context.Context, node, value string) error {
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "label", "node", node, e.label()+"-")
		return err
	})
	_, err := e.kubectl(ctx, "label", "node", node, e.label()+"="+value)
	return err
}

// waits requires that the scheduler finds no node for a Pod, for the given reason.
func (e *env) waits(ctx context.Context, pod, reason string) error {
	if err := e.wait(ctx, `jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}=Unschedulable`, "pod/"+pod); err != nil {
		return err
	}
	said, err := e.get(ctx, "pod/"+pod, `{.status.conditions[?(@.type=="PodScheduled")].message}`)
	if err == nil && !strings.Contains(said, reason) {
		err = fmt.Errorf("pod %s is pending because of %q, want %q", pod, said, reason)
	}
	return err
}

// scheduled waits until a Pod has a node, and returns it.
func (e *env) scheduled(ctx context.Context, pod string) (node string, err error) {
	if err := e.wait(ctx, "condition=PodScheduled", "pod/"+pod); err != nil {
		return "", err
	}
	return e.get(ctx, "pod/"+pod, "{.spec.nodeName}")
}

// on requires that a Pod is scheduled to a node.
func (e *env) on(ctx context.Context, pod, want string) error {
	node, err := e.scheduled(ctx, pod)
	if err == nil && node != want {
		err = fmt.Errorf("pod %s is on %s, want %s", pod, node, want)
	}
	return err
}

// A Pod that names its node runs there without the scheduler.
func nodeName(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("web", "wait", spec("nodeName: "+e.lastNode()), spec("schedulerName: nobody"))); err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	return e.is(ctx, "events", `{.items[?(@.reason=="Scheduled")].reason}`, "")
}

// A Pod with a node selector is pending until a node has the label, and runs there.
func nodeSelector(ctx context.Context, e *env) error {
	return e.waitsForLabel(ctx, "nodeSelector: {"+e.label()+": ssd}")
}

// So does a Pod whose node affinity requires the label.
func nodeAffinityRequired(ctx context.Context, e *env) error {
	return e.waitsForLabel(ctx, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "+
		"[{matchExpressions: [{key: "+e.label()+", operator: In, values: [ssd, nvme]}]}]}}}")
}

func (e *env) waitsForLabel(ctx context.Context, field string) error {
	if err := e.apply(ctx, pod("web", "wait", spec(field))); err != nil {
		return err
	}
	if err := e.waits(ctx, "web", "didn't match Pod's node affinity/selector"); err != nil {
		return err
	}
	if err := e.labelNode(ctx, e.lastNode(), "ssd"); err != nil {
		return err
	}
	return e.on(ctx, "web", e.lastNode())
}

// Pods that prefer a node run there although there are others, and a Pod that prefers what no node has runs anyway.
func nodeAffinityPreferred(ctx context.Context, e *env) error {
	if err := e.severalNodes("on the only node a Pod runs whatever it prefers"); err != nil {
		return err
	}
	const field = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: " +
		"[{key: %s, operator: In, values: [%s]}]}}]}}"
	if err := e.labelNode(ctx, e.lastNode(), "ssd"); err != nil {
		return err
	}
	names := []string{"a", "b", "c", "d"} // more than chance would put there
	text := pod("tape", "wait", spec(fmt.Sprintf(field, e.label(), "tape")))
	for _, name := range names {
		text += pod(name, "wait", spec(fmt.Sprintf(field, e.label(), "ssd")))
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	for _, name := range names {
		if err := e.on(ctx, name, e.lastNode()); err != nil {
			return err
		}
	}
	_, err := e.scheduled(ctx, "tape")
	return err
}

// A Pod that requires to be near another is pending until that exists, and runs on its node.
func podAffinity(ctx context.Context, e *env) error {
	err := e.apply(ctx, pod("web", "wait", spec("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}]}}")))
	if err != nil {
		return err
	}
	if err := e.waits(ctx, "web", "didn't match pod affinity rules"); err != nil {
		return err
	}
	if err := e.apply(ctx, pod("cache", "wait")); err != nil {
		return err
	}
	node, err := e.scheduled(ctx, "cache")
	if err != nil {
		return err
	}
	return e.on(ctx, "web", node)
}

// Pods that require to be apart run on different nodes, and one more is pending until one of them is gone.
func podAntiAffinity(ctx context.Context, e *env) error {
	apart := func(name string) string {
		return pod(name, "wait", label("role: single"), spec("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {role: single}}}]}}"))
	}
	seen := map[string]string{}
	for n := range e.nodes {
		name := fmt.Sprintf("web-%d", n)
		if err := e.apply(ctx, apart(name)); err != nil {
			return err
		}
		node, err := e.scheduled(ctx, name)
		if err != nil {
			return err
		}
		if other := seen[node]; other != "" {
			return fmt.Errorf("pods %s and %s are both on %s", other, name, node)
		}
		seen[node] = name
	}
	if err := e.apply(ctx, apart("more")); err != nil {
		return err
	}
	if err := e.waits(ctx, "more", "didn't match pod anti-affinity rules"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pod/web-0"); err != nil {
		return err
	}
	_, err := e.scheduled(ctx, "more")
	return err
}

// A Pod that requests more than any node has is pending, and the scheduler says which resource is insufficient.
func resourceFit(ctx context.Context, e *env) error {
	err := e.apply(ctx, pod("processor", "wait", requests("cpu", "1000"))+pod("memory", "wait", requests("memory", "100Ti"))+
		pod("small", "wait", requests("memory", "8Mi")))
	if err != nil {
		return err
	}
	for pod, reason := range map[string]string{"processor": "Insufficient cpu", "memory": "Insufficient memory"} {
		if err := e.waits(ctx, pod, reason); err != nil {
			return err
		}
	}
	_, err = e.scheduled(ctx, "small")
	return err
}

// Where no other place is left, a Pod of higher priority replaces one of lower priority, and one of equal priority is pending.
func preemption(ctx context.Context, e *env) error {
	resource := e.label()
	if err := e.advertise(ctx, e.lastNode(), resource); err != nil {
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "priorityclass", e.namespace+"-low", e.namespace+"-high", "--ignore-not-found")
		return err
	})
	err := e.apply(ctx, `
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $namespace-low}, value: 10}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $namespace-high}, value: 1000}
`)
	if err != nil {
		return err
	}
	low, high := spec("priorityClassName: "+e.namespace+"-low"), spec("priorityClassName: "+e.namespace+"-high")
	one := requests(resource, "1")
	if err := e.apply(ctx, pod("low", "wait", one, low)); err != nil {
		return err
	}
	if err := e.on(ctx, "low", e.lastNode()); err != nil {
		return err
	}
	if err := e.apply(ctx, pod("equal", "wait", one, low)); err != nil {
		return err
	}
	if err := e.waits(ctx, "equal", "Insufficient "+resource); err != nil {
		return err
	}
	if err := e.apply(ctx, pod("high", "wait", one, high)); err != nil {
		return err
	}
	if err := e.on(ctx, "high", e.lastNode()); err != nil {
		return err
	}
	return e.wait(ctx, "delete", "pod/low")
}

// advertise gives a node one unit of a resource until the check ends.
func (e *env) advertise(ctx context.Context, node, resource string) error {
	patch := func(ctx context.Context, op, value string) error {
		path := strings.ReplaceAll(resource, "/", "~1")
		one := `{"op": "` + op + `", "path": "/status/%s/` + path + `"` + value + `}`
		_, err := e.kubectl(ctx, "patch", "node", node, "--subresource=status", "--type=json",
			"--patch=["+fmt.Sprintf(one, "capacity")+", "+fmt.Sprintf(one, "allocatable")+"]")
		return err
	}
	e.cleanup(func(ctx context.Context) error { return patch(ctx, "remove", "") })
	return patch(ctx, "add", `, "value": "1"`)
}

// While all nodes are tainted, only Pods that tolerate the taint are scheduled.
func taints(ctx context.Context, e *env) error {
	untaint := func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "taint", "nodes", "--all", e.label()+"-")
		return err
	}
	tainted := true
	e.cleanup(func(ctx context.Context) error {
		if !tainted {
			return nil
		}
		return untaint(ctx)
	})
	if _, err := e.kubectl(ctx, "taint", "nodes", "--all", e.label()+"=gpu:NoSchedule"); err != nil {
		return err
	}
	tolerates := func(value string) edit {
		return spec("tolerations: [{key: " + e.label() + ", operator: Equal, value: " + value + ", effect: NoSchedule}]")
	}
	err := e.apply(ctx, pod("plain", "wait")+pod("other", "wait", tolerates("other"))+pod("tolerant", "wait", tolerates("gpu")))
	if err != nil {
		return err
	}
	if _, err := e.scheduled(ctx, "tolerant"); err != nil {
		return err
	}
	for _, pod := range []string{"plain", "other"} {
		if err := e.waits(ctx, pod, "had untolerated taint"); err != nil {
			return err
		}
	}
	if err := untaint(ctx); err != nil {
		return err
	}
	tainted = false
	for _, pod := range []string{"plain", "other"} {
		if _, err := e.scheduled(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
