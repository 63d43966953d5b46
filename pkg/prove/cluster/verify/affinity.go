package verify

import (
	"context"
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
func affinityOperators(ctx context.Context, e *env) error {
	node := e.lastNode()
	if err := e.labelNode(ctx, node, `3`); err != nil {
		return err
	}
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
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	for name := range runs {
		if err := e.on(ctx, name, node); err != nil {
			return err
		}
	}
	for name := range pending {
		if err := e.waits(ctx, name, "didn't match Pod's node affinity/selector"); err != nil {
			return err
		}
	}
	return nil
}

// Pods that prefer to be near another Pod run on its node, and those that prefer to be away from it do not.
func podAffinityPreferred(ctx context.Context, e *env) error {
	if err := e.severalNodes("on the only node a Pod is near all others whatever it prefers"); err != nil {
		return err
	}
	prefers := func(kind string) edit {
		return spec("affinity: {" + kind + ": {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: " +
			"{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: cache}}}}]}}")
	}
	if err := e.apply(ctx, pod("cache", "wait", spec("nodeName: "+e.lastNode()))); err != nil {
		return err
	}
	if err := e.ready(ctx, "cache"); err != nil {
		return err
	}
	var text string
	for n := range 4 { // more than chance would put there
		text += pod(fmt.Sprintf("near-%d", n), "wait", prefers("podAffinity")) +
			pod(fmt.Sprintf("away-%d", n), "wait", prefers("podAntiAffinity"))
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	for n := range 4 {
		if err := e.on(ctx, fmt.Sprintf("near-%d", n), e.lastNode()); err != nil {
			return err
		}
		if err := e.elsewhere(ctx, fmt.Sprintf("away-%d", n), e.lastNode()); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere requires that a Pod is scheduled, and not to a node.
func (e *env) elsewhere(ctx context.Context, pod, not string) error {
	node, err := e.scheduled(ctx, pod)
	if err == nil && node == not {
		err = fmt.Errorf("pod %s is on %s, want another node", pod, node)
	}
	return err
}

// Pods that have to be spread are as many on one node as on another, and one that would be too many there is pending.
func topologySpread(ctx context.Context, e *env) error {
	if err := e.severalNodes("on the only node all Pods are together"); err != nil {
		return err
	}
	spread := spec("topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, " +
		"nodeAffinityPolicy: Ignore, " +
		"labelSelector: {matchLabels: {role: spread}}}]")
	var text string
	const each = 2
	count := each * len(e.nodes)
	for n := range count {
		text += pod(fmt.Sprintf("web-%d", n), "wait", label("role: spread"), spread)
	}
	if err := e.apply(ctx, text); err != nil {
		return err
	}
	on := map[string]int{}
	for n := range count {
		node, err := e.scheduled(ctx, fmt.Sprintf("web-%d", n))
		if err != nil {
			return err
		}
		on[node]++
	}
	for _, n := range e.nodes {
		if on[n.Name] != each {
			return fmt.Errorf("the Pods are spread as %v, want %d on each node", on, each)
		}
	}
	here := spec("nodeSelector: {kubernetes.io/hostname: " + e.lastNode() + "}")
	if err := e.apply(ctx, pod("one", "wait", label("role: spread"), spread, here)); err != nil {
		return err
	}
	if err := e.on(ctx, "one", e.lastNode()); err != nil {
		return err
	}
	if err := e.apply(ctx, pod("more", "wait", label("role: spread"), spread, here)); err != nil {
		return err
	}
	return e.waits(ctx, "more", "didn't match pod topology spread constraints")
}

// Of two nodes, the scheduler prefers the one of whose memory less is requested.
func scoring(ctx context.Context, e *env) error {
	if err := e.severalNodes("the only node has the highest score"); err != nil {
		return err
	}
	for _, full := range []string{e.nodes[0].Name, e.lastNode()} {
		heavy, light := "heavy-on-"+full, "light-beside-"+full
		most, err := e.mostMemory(ctx, full)
		if err != nil {
			return err
		}
		here := spec("nodeSelector: {kubernetes.io/hostname: " + full + "}")
		if err := e.apply(ctx, pod(heavy, "wait", here, container("resources: {requests: {memory: "+most+"}}"))); err != nil {
			return err
		}
		if err := e.on(ctx, heavy, full); err != nil {
			return err
		}
		if err := e.apply(ctx, pod(light, "wait", container("resources: {requests: {memory: 16Mi}}"))); err != nil {
			return err
		}
		if err := e.elsewhere(ctx, light, full); err != nil {
			return err
		}
		if _, err := e.kubectl(ctx, "delete", "--now", "pod/"+heavy, "pod/"+light); err != nil {
			return err
		}
	}
	return nil
}

// mostMemory returns three quarters of a node's memory.
func (e *env) mostMemory(ctx context.Context, node string) (string, error) {
	text, err := e.get(ctx, "node/"+node, "{.status.allocatable.memory}")
	if err != nil {
		return "", err
	}
	var kib int64
	if _, err := fmt.Sscanf(text, "%dKi", &kib); err != nil {
		return "", fmt.Errorf("node %s has memory %q: %w", node, text, err)
	}
	return fmt.Sprintf("%dKi", kib*3/4), nil
}

// A Pod that names a node which does not exist is deleted.
func missingNode(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("lost", "wait", spec("nodeName: missing-"+e.namespace))); err != nil {
		return err
	}
	return e.wait(ctx, "delete", "pod/lost")
}

// A kubelet refuses a Pod for which its node has not enough: nobody has to ask the scheduler.
func outOfCPU(ctx context.Context, e *env) error {
	if err := e.apply(ctx, pod("large", "wait", spec("nodeName: "+e.lastNode()), requests("cpu", "1000"))); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.phase}=Failed", "pod/large"); err != nil {
		return err
	}
	return e.is(ctx, "pod/large", "{.status.reason}", "OutOfcpu")
}

// A taint evicts the Pods of a node that do not tolerate it, and those that tolerate it for some seconds after these.
func taintEviction(ctx context.Context, e *env) error {
	node, key := e.lastNode(), e.label()
	tolerates := func(seconds string) edit {
		return spec("tolerations: [{key: " + key + ", operator: Exists, effect: NoExecute" + seconds + "}]")
	}
	here := spec("nodeName: " + node)
	brief := spec("terminationGracePeriodSeconds: 1")
	err := e.apply(ctx, pod("plain", "wait", here, brief)+pod("patient", "wait", here, brief, tolerates(", tolerationSeconds: 6"))+
		pod("tolerant", "wait", here, brief, tolerates("")))
	if err != nil {
		return err
	}
	if err := e.ready(ctx, "plain", "patient", "tolerant"); err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + e.namespace + "/pods"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		if _, err := e.kubectl(ctx, "taint", "node", node, key+"-"); err != nil {
			return err
		}
		_, err := e.kubectl(ctx, "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s") // it may have been there
		return err
	})
	if _, err := e.kubectl(ctx, "taint", "node", node, key+"=gone:NoExecute"); err != nil {
		return err
	}
	if err := e.wait(ctx, "delete", "pod/plain", "pod/patient"); err != nil {
		return err
	}
	changes, err := e.since(ctx, path, version)
	if err != nil {
		return err
	}
	var gone []string
	for _, c := range changes {
		if c.Type == "DELETED" {
			gone = append(gone, c.Object.Metadata.Name)
		}
	}
	if !slices.Equal(gone, []string{"plain", "patient"}) {
		return fmt.Errorf("the taint has evicted %q, want plain and later patient", gone)
	}
	return e.is(ctx, "pod/tolerant", "{.status.phase}", "Running")
}
