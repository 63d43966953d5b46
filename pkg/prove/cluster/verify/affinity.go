package verify

import (
	"fmt"
	"strings"
)

// A Pod with a node selector is pending until a node has the label, and runs there.
func nodeSelector(e *env) {
	e.waitsForLabel("nodeSelector: {" + e.label() + ": ssd}")
}

// A Pod whose node affinity requires a label is pending until a node has it, and runs there.
func nodeAffinityRequired(e *env) {
	e.waitsForLabel("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
		"[{matchExpressions: [{key: " + e.label() + ", operator: In, values: [ssd, nvme]}]}]}}}")
}

// waitsForLabel requires that a Pod with a field waits for a node with the label, and that it stays there when the label is gone.
func (e *env) waitsForLabel(field string) {
	const unmatched = "didn't match Pod's node affinity/selector"
	e.apply(pod("web", "wait", spec(field)))
	e.waits("web", unmatched)
	e.labelNode(e.lastNode(), "ssd")
	e.on("web", e.lastNode())
	e.ready("web")
	uid := e.get("pod/web", "{.metadata.uid}")
	e.kubectl("label", "node", e.lastNode(), e.label()+"-")
	e.apply(pod("late", "wait", spec(field)))
	e.waits("late", unmatched) // by then, the label is gone for all
	during("without the label", func() {
		e.is("pod/web", "{.metadata.uid} {.status.phase}{.metadata.deletionTimestamp}", uid+" Running")
	})
}

// Pods run on the node that they prefer, and a Pod that prefers what no node has runs anyway.
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

// nodeAffinity returns a Pod's field that requires one of several terms, each of several expressions.
func nodeAffinity(terms ...string) edit {
	var all []string
	for _, expressions := range terms {
		all = append(all, "{matchExpressions: ["+expressions+"]}")
	}
	return spec("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
		strings.Join(all, ", ") + "]}}}")
}

// Each operator of node affinity matches the nodes that it should. A node has to match one of several terms, all expressions of a term, and
// the node selector.
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

// A Pod that must be near another is pending until that exists in its own namespace, or in one that it names, and runs on its node. It has
// to say what near is.
func podAffinity(e *env) {
	other := e.namespace + "-more"
	e.kubectl("create", "namespace", other)
	e.cleanup(func() { e.kubectl("delete", "namespace", other, "--ignore-not-found", "--wait=false") })
	near := func(name, key, more string) string {
		return pod(name, "wait", spec("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: \""+key+"\", labelSelector: {matchLabels: {app: cache}}"+more+"}]}}"))
	}
	refused("topologyKey: Required value", func() string { e.apply(near("anywhere", "", "")); return "" })
	const host, unmatched = "kubernetes.io/hostname", "didn't match pod affinity rules"
	e.apply(near("web", host, "") + near("far", host, ", namespaces: ["+other+"]"))
	for _, name := range []string{"web", "far"} {
		e.waits(name, unmatched)
	}
	e.apply(pod("cache", "wait"))
	e.on("web", e.scheduled("cache"))
	e.waits("far", unmatched)
	there := e.expand(pod("cache", "wait", spec("nodeName: "+e.lastNode())))
	e.until(func() { e.feed(there, "-n", other, "apply", "-f", "-") }) // the namespace's service account comes a moment later
	e.on("far", e.lastNode())
}

// Pods that must be apart run on different nodes, and one more is pending until one of them is deleted.
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

// Pods that prefer to be near another run on its node, and those that prefer to be away from it do not.
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

// Pods that must be spread are spread evenly over the nodes, and one that would be too many on a node is pending.
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
