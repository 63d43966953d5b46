package verify

import (
	"slices"
	"strings"
)

// workload is a Deployment, ReplicaSet, StatefulSet or DaemonSet whose Pods serve. ROUND changes with each update.
const workload = `
apiVersion: apps/v1
kind: $kind
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  $spec
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: $image
        imagePullPolicy: IfNotPresent
        args: [serve]
        env: [{name: ROUND, value: "$round"}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
      $pod
`

func (e *env) workload(kind, spec, round string) {
	e.apply(workload, "kind", kind, "spec", spec, "round", round, "pod", "")
}

// A rolling update replaces all Pods, and never has more or fewer of them than its strategy allows.
func deploymentRollout(e *env) {
	const spec = "replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}"
	const most, fewest = 4, 2
	e.workload("Deployment", spec, "1")
	e.rolledOut("deployment/web")
	sets, deployments := e.watch("/apis/apps/v1", "replicasets"), e.watch("/apis/apps/v1", "deployments")
	before := e.get("replicaset", "{.items[*].metadata.name}")
	e.workload("Deployment", spec, "2")
	e.rolledOut("deployment/web")
	wanted := map[string]int{before: 3}
	for _, c := range sets.changes() {
		wanted[c.Object.Metadata.Name] = c.Object.Spec.Replicas
		total := 0
		for _, n := range wanted {
			total += n
		}
		if total > most {
			fail("the ReplicaSets want %v: %d Pods, at most %d are allowed", wanted, total, most)
		}
	}
	if len(wanted) != 2 || wanted[before] != 0 {
		fail("after the update the ReplicaSets want %v, not only Pods of a new one", wanted)
	}
	states := deployments.changes()
	if len(states) == 0 {
		fail("the watch reports no change of the Deployment, so it does not say how many Pods were available")
	}
	for _, c := range states {
		if n := c.Object.Status.AvailableReplicas; n < fewest {
			fail("%d Pods were available, at least %d are required", n, fewest)
		}
	}
}

// A paused Deployment does not roll out changes until it is resumed, and undo rolls back to the previous one.
func deploymentPause(e *env) {
	round := func(want string) {
		e.rolledOut("deployment/web")
		e.becomes("replicaset", `{.items[?(@.status.availableReplicas==2)].spec.template.spec.containers[0].env[0].value}`, want)
	}
	e.workload("Deployment", "replicas: 2", "1")
	round("1")
	e.kubectl("rollout", "pause", "deployment/web")
	e.workload("Deployment", "replicas: 2\n  paused: true", "2")
	seen := e.get("deployment/web", "{.metadata.generation}")
	e.wait("jsonpath={.status.observedGeneration}="+seen, "deployment/web")
	during("while the Deployment is paused", func() {
		e.is("replicaset", "{.items[*].spec.template.spec.containers[0].env[0].value}", "1")
	})
	e.kubectl("rollout", "resume", "deployment/web")
	round("2")
	e.kubectl("rollout", "undo", "deployment/web")
	round("1")
}

// A Deployment that recreates its Pods creates none before all old ones have ended.
func deploymentRecreate(e *env) {
	const spec = "replicas: 2\n  strategy: {type: Recreate}"
	e.workload("Deployment", spec, "1")
	e.rolledOut("deployment/web")
	left := strings.Fields(e.get("pods", "{.items[*].metadata.uid}", "--selector=app=web"))
	if len(left) != 2 {
		fail("before the update there are %d Pods, want 2", len(left))
	}
	pods := e.watch("/api/v1", "pods")
	e.workload("Deployment", spec, "2")
	e.rolledOut("deployment/web")
	created := 0
	for _, c := range pods.changes() {
		switch {
		case c.Type == "ADDED":
			if created++; len(left) > 0 {
				fail("pod %s was created while there were still %d old ones", c.Object.Metadata.Name, len(left))
			}
		case c.Type == "DELETED" || c.Object.ended():
			left = slices.DeleteFunc(left, func(uid string) bool { return uid == c.Object.Metadata.UID })
		}
	}
	if created != 2 {
		fail("%d Pods were created, want 2", created)
	}
}

// A ReplicaSet replaces a Pod that was deleted, and one that has lost its label.
func replicaSet(e *env) {
	e.workload("ReplicaSet", "replicas: 2", "1")
	e.wait("jsonpath={.status.readyReplicas}=2", "replicaset/web")
	old := strings.Fields(e.get("pods", "{.items[*].metadata.name}"))
	if len(old) != 2 {
		fail("there are pods %q, want 2", old)
	}
	e.kubectl("delete", "pod/"+old[0], "--now")
	e.kubectl("label", "pod/"+old[1], "app-")
	e.until(func() {
		now := strings.Fields(e.get("pods", `{.items[?(@.status.containerStatuses[0].ready==true)].metadata.name}`, "--selector=app=web"))
		if len(now) != 2 || slices.Contains(now, old[0]) || slices.Contains(now, old[1]) {
			fail("pods %q are ready, want two that are none of %q", now, old)
		}
	})
}

// A ReplicaSet with too many Pods deletes those that are cheapest to delete.
func scaleDown(e *env) {
	e.workload("ReplicaSet", "replicas: 3", "1")
	e.wait("jsonpath={.status.readyReplicas}=3", "replicaset/web")
	pods := strings.Fields(e.get("pods", "{.items[*].metadata.name}", "--selector=app=web"))
	dear := slices.Max(pods)
	e.kubectl("annotate", "pod/"+dear, "controller.kubernetes.io/pod-deletion-cost=100")
	e.kubectl("scale", "replicaset/web", "--replicas=1")
	e.becomes("pods", "{.items[*].metadata.name}", dear)
}

// Pods that have lost their ReplicaSet or StatefulSet run on, and another one with the same selector adopts them instead of creating new
// ones.
func adoption(e *env) {
	e.adopts("ReplicaSet", "replicas: 2")
	e.adopts("StatefulSet", "serviceName: web\n  replicas: 2\n  podManagementPolicy: Parallel")
}

func (e *env) adopts(kind, spec string) {
	set := strings.ToLower(kind) + "/web"
	twoReady := func() {
		e.workload(kind, spec, "1")
		e.wait("jsonpath={.status.readyReplicas}=2", set)
	}
	twoReady()
	const uids, owners = "{.items[*].metadata.uid}", "{.items[*].metadata.ownerReferences[*].uid}"
	before := e.get("pods", uids)
	e.kubectl("delete", set, "--cascade=orphan")
	e.becomes("pods", owners, "")
	twoReady()
	uid := e.get(set, "{.metadata.uid}")
	e.becomes("pods", owners, uid+" "+uid)
	if after := e.get("pods", uids); after != before {
		fail("the Pods of the %s were %s, and are %s", kind, before, after)
	}
	e.kubectl("delete", set, "--cascade=foreground")
}

// A ReplicationController, the oldest of the controllers, replaces a Pod that was deleted.
func replicationController(e *env) {
	e.apply(strings.NewReplacer("apps/v1", "v1", "{matchLabels: {app: web}}", "{app: web}").Replace(workload),
		"kind", "ReplicationController", "spec", "replicas: 1", "round", "1", "pod", "")
	const ready = `{.items[?(@.status.containerStatuses[0].ready==true)].metadata.uid}`
	var before string
	e.until(func() {
		if before = e.get("pods", ready); before == "" {
			fail("no Pod is ready")
		}
	})
	e.kubectl("delete", "pods", "--now", "--selector=app=web")
	e.until(func() {
		if after := e.get("pods", ready); after == "" || after == before {
			fail("the Pod was not replaced")
		}
	})
}

const stateful = "serviceName: web\n  replicas: 3"

// A StatefulSet creates its Pods in order, each when the one before is ready, and deletes them in reverse order.
func statefulSetOrder(e *env) {
	pods := e.watch("/api/v1", "pods")
	e.workload("StatefulSet", stateful, "1")
	e.rolledOut("statefulset/web")
	e.kubectl("scale", "statefulset/web", "--replicas=1")
	e.wait("delete", "pod/web-1", "pod/web-2")
	pods.inOrder("web-0 created", "web-0 ready", "web-1 created", "web-1 ready", "web-2 created", "web-2 ready",
		"web-2 deleted", "web-1 deleted")
}

// An update of a StatefulSet replaces Pods from the last one down to the partition, and goes on when that is lowered.
func statefulSetPartition(e *env) {
	partition := func(n string) string {
		return stateful + "\n  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {partition: " + n + "}}"
	}
	e.workload("StatefulSet", partition("2"), "1")
	e.wait("jsonpath={.status.readyReplicas}=3", "statefulset/web")
	pods := e.watch("/api/v1", "pods")
	e.workload("StatefulSet", partition("2"), "2")
	e.rolledOut("statefulset/web")
	pods.inOrder("web-2 deleted", "web-2 created", "web-2 ready")
	pods = e.watch("/api/v1", "pods")
	e.workload("StatefulSet", partition("0"), "2")
	e.rolledOut("statefulset/web")
	pods.inOrder("web-1 deleted", "web-1 created", "web-1 ready", "web-0 deleted", "web-0 created", "web-0 ready")
}

// A StatefulSet with OnDelete has a Pod of the new revision only where the old one was deleted.
func statefulSetOnDelete(e *env) {
	const spec = "serviceName: web\n  replicas: 2\n  podManagementPolicy: Parallel\n  updateStrategy: {type: OnDelete}"
	e.workload("StatefulSet", spec, "1")
	e.wait("jsonpath={.status.readyReplicas}=2", "statefulset/web")
	e.workload("StatefulSet", spec, "2")
	e.wait("jsonpath={.status.observedGeneration}=2", "statefulset/web")
	e.kubectl("delete", "pod/web-1", "--now")
	const rounds = `{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}={.spec.containers[0].env[0].value} {end}`
	e.becomes("pods", rounds, "web-0=1 web-1=2")
}

// A DaemonSet has no Pod on a node that its node selector does not match, and one on a node that it does, which is replaced when deleted.
func daemonSet(e *env) {
	node := e.lastNode()
	e.apply(workload, "kind", "DaemonSet", "spec", "", "round", "1", "pod", "nodeSelector: {"+e.label()+": here}")
	e.wait("jsonpath={.status.observedGeneration}=1", "daemonset/web")
	for _, field := range []string{"{.status.desiredNumberScheduled}", "{.status.currentNumberScheduled}", "{.status.numberMisscheduled}"} {
		e.is("daemonset/web", field, "0")
	}
	e.labelNode(node, "here")
	one := func() { e.readyOn(node) }
	e.until(one)
	before := e.get("pods", "{.items[*].metadata.uid}", "--selector=app=web")
	e.kubectl("delete", "pods", "--now", "--selector=app=web")
	e.until(one)
	if e.get("pods", "{.items[*].metadata.uid}", "--selector=app=web") == before {
		fail("the Pod was not replaced")
	}
}

// A DaemonSet has one Pod on each node.
func daemonSetEachNode(e *env) {
	e.severalNodes("on one, a DaemonSet looks like one Pod")
	e.workload("DaemonSet", "", "1")
	var nodes []string
	for _, n := range e.nodes {
		nodes = append(nodes, n.Name)
	}
	e.until(func() { e.readyOn(nodes...) })
}

// readyOn requires that a workload has one Pod on each of these nodes and none elsewhere, and that all are ready.
func (e *env) readyOn(want ...string) {
	got := strings.Fields(e.get("pods", "{.items[?(@.status.containerStatuses[0].ready==true)].spec.nodeName}", "--selector=app=web"))
	slices.Sort(got)
	slices.Sort(want)
	names := strings.Fields(e.get("pods", "{.items[*].metadata.name}", "--selector=app=web"))
	if !slices.Equal(got, want) || len(names) != len(want) {
		fail("of Pods %q there are ready ones on %q, want one on each of %q", names, got, want)
	}
}
