package verify

import (
	"fmt"
	"slices"
	"strings"
)

// nodeAffinity returns a Pod's field that requires one of several terms, each of several expressions.
func nodeAffinity(terms ...string) edit {
	var all []string
	for _, expressions := range terms {
		all = append(all, "{matchExpressions: ["+expressions+"]}")
	}
	return spec("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
		strings.Join(all, ", ") + "]}}}")
}

// Each operator of node affinity matches the nodes that it should. One of several terms is enough, and all expressions of a term and the
// node selector count.
func affinityOperators(e *env) {
	node := e.lastNode()
	e.labelNode(node, `3`)
	here := "{key: kubernetes.io/hostname, operator: In, values: [" + node + "]}"
	is := func(operator string, values ...string) string {
		text := "{key: " + e.label() + ", operator: " + operator
		if len(values) > 0 {
			text += `, values: ["` + strings.Join(values, `", "`) + `"]`
		}
		return text + "}"
	}
	selector := func(value string) edit { return spec(`nodeSelector: {` + e.label() + `: "` + value + `"}`) }
	runs := map[string][]edit{
		"in":       {nodeAffinity(is("In", "2", "3"))},
		"not-in":   {nodeAffinity(here + ", " + is("NotIn", "2", "4"))},
		"exists":   {nodeAffinity(is("Exists"))},
		"gt":       {nodeAffinity(is("Gt", "2"))},
		"lt":       {nodeAffinity(is("Lt", "4"))},
		"or":       {nodeAffinity(is("In", "2"), is("In", "3"))},
		"selector": {nodeAffinity(is("Exists")), selector("3")},
	}
	pending := map[string][]edit{
		"no-in":       {nodeAffinity(is("In", "2", "4"))},
		"no-not-in":   {nodeAffinity(here + ", " + is("NotIn", "3", "4"))},
		"not-exists":  {nodeAffinity(here + ", " + is("DoesNotExist"))},
		"no-gt":       {nodeAffinity(is("Gt", "3"))},
		"no-lt":       {nodeAffinity(is("Lt", "3"))},
		"and":         {nodeAffinity(is("Exists") + ", " + is("In", "2"))},
		"no-selector": {nodeAffinity(is("Exists")), selector("2")},
	}
	var text string
	for _, pods := range []map[string][]edit{runs, pending} {
		for name, edits := range pods {
			text += pod(name, "wait", edits...)
		}
	}
	e.apply(text)
	for name := range runs {
		e.on(name, node)
	}
	for name := range pending {
		e.waits(name, "didn't match Pod's node affinity/selector")
	}
}

// Pods that prefer to be near another Pod run on its node, and those that prefer to be away from it do not.
func podAffinityPreferred(e *env) {
	e.severalNodes("on the only node a Pod is near all others whatever it prefers")
	prefers := func(kind string) edit {
		return spec("affinity: {" + kind + ": {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " +
			"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}}]}}")
	}
	e.apply(pod("cache", "wait", spec("nodeName: "+e.lastNode())))
	e.ready("cache")
	var text string
	for n := range 4 { // more than chance would put there
		text += pod(fmt.Sprintf("near-%d", n), "wait", prefers("podAffinity")) +
			pod(fmt.Sprintf("away-%d", n), "wait", prefers("podAntiAffinity"))
	}
	e.apply(text)
	for n := range 4 {
		e.on(fmt.Sprintf("near-%d", n), e.lastNode())
		e.elsewhere(fmt.Sprintf("away-%d", n), e.lastNode())
	}
}

// elsewhere requires that a Pod is scheduled, and not to a node.
func (e *env) elsewhere(pod, not string) {
	if node := e.scheduled(pod); node == not {
		fail("pod %s is on %s, want another node", pod, node)
	}
}

// Pods that have to be spread are as many on one node as on another, and one that would be too many there is pending.
func topologySpread(e *env) {
	e.severalNodes("on the only node all Pods are together")
	spread := spec("topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, " +
		"nodeAffinityPolicy: Ignore, " +
		"labelSelector: {matchLabels: {role: spread}}}]")
	var text string
	const each = 2
	count := each * len(e.nodes)
	for n := range count {
		text += pod(fmt.Sprintf("web-%d", n), "wait", label("role: spread"), spread)
	}
	e.apply(text)
	on := map[string]int{}
	for n := range count {
		on[e.scheduled(fmt.Sprintf("web-%d", n))]++
	}
	for _, n := range e.nodes {
		if on[n.Name] != each {
			fail("the Pods are spread as %v, want %d on each node", on, each)
		}
	}
	here := spec("nodeSelector: {kubernetes.io/hostname: " + e.lastNode() + "}")
	e.apply(pod("one", "wait", label("role: spread"), spread, here))
	e.on("one", e.lastNode())
	e.apply(pod("more", "wait", label("role: spread"), spread, here))
	e.waits("more", "didn't match pod topology spread constraints")
}

// Of two nodes, the scheduler prefers the one of whose memory less is requested.
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

// A Pod that names a node which does not exist is deleted.
func missingNode(e *env) {
	e.apply(pod("lost", "wait", spec("nodeName: missing-"+e.namespace)))
	e.wait("delete", "pod/lost")
}

// A kubelet refuses a Pod for which its node has not enough: nobody has to ask the scheduler.
func outOfCPU(e *env) {
	e.apply(pod("large", "wait", spec("nodeName: "+e.lastNode()), requests("cpu", "1000")))
	e.wait("jsonpath={.status.phase}=Failed", "pod/large")
	e.is("pod/large", "{.status.reason}", "OutOfcpu")
}

// A taint evicts the Pods of a node that do not tolerate it, and those that tolerate it for some seconds after these.
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
		e.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s") // it may have been there
	})
	e.kubectl("taint", "node", node, key+"=gone:NoExecute")
	e.wait("delete", "pod/plain", "pod/patient")
	if gone := pods.deleted(); !slices.Equal(gone, []string{"plain", "patient"}) {
		fail("the taint has evicted %q, want plain and later patient", gone)
	}
	e.is("pod/tolerant", "{.status.phase}", "Running")
}
