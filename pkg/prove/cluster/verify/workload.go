package verify

import (
	"slices"
	"strings"
)

// What controllers do for objects that make Pods.
var workloadChecks = withPods(
	Check{Name: "deployment-rollout", run: deploymentRollout},
	Check{Name: "deployment-pause", run: deploymentPause},
	Check{Name: "deployment-recreate", run: deploymentRecreate},
	Check{Name: "replicaset", run: replicaSet},
	Check{Name: "scale-down", run: scaleDown},
	Check{Name: "adoption", run: adoption},
	Check{Name: "replication-controller", run: replicationController},
	Check{Name: "statefulset-order", run: statefulSetOrder},
	Check{Name: "statefulset-partition", run: statefulSetPartition},
	Check{Name: "statefulset-on-delete", run: statefulSetOnDelete},
	Check{Name: "daemonset", run: daemonSet},
	Check{Name: "daemonset-each-node", Skips: true, run: daemonSetEachNode},
	Check{Name: "job", run: job},
	Check{Name: "job-parallelism", run: jobParallelism},
	Check{Name: "cronjob", Long: true, run: cronJob},
)

// withPods adds the components that Pods need.
func withPods(checks ...Check) []Check {
	for i := range checks {
		checks[i].Needs = []string{scheduler, kubelet}
	}
	return checks
}

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
	for _, c := range deployments.changes() {
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

const stateful = "serviceName: web\n  replicas: 3"

// A StatefulSet creates its Pods in order, each when the one before is ready, and deletes them in reverse order.
func statefulSetOrder(e *env) {
	pods := e.watch("/api/v1", "pods")
	e.workload("StatefulSet", stateful, "1")
	e.rolledOut("statefulset/web")
	e.kubectl("scale", "statefulset/web", "--replicas=1")
	e.wait("delete", "pod/web-1", "pod/web-2")
	pods.inOrder("web-0 made", "web-0 ready", "web-1 made", "web-1 ready", "web-2 made", "web-2 ready", "web-2 gone", "web-1 gone")
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
	pods.inOrder("web-2 gone", "web-2 made", "web-2 ready")
	pods = e.watch("/api/v1", "pods")
	e.workload("StatefulSet", partition("0"), "2")
	e.rolledOut("statefulset/web")
	pods.inOrder("web-1 gone", "web-1 made", "web-1 ready", "web-0 gone", "web-0 made", "web-0 ready")
}

// A DaemonSet has no Pod where its node selector does not match, and exactly one where it does, which is replaced when deleted.
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

// readyOn requires that one Pod of a workload is ready on each of these nodes, and that there are no others.
func (e *env) readyOn(want ...string) {
	got := strings.Fields(e.get("pods", "{.items[?(@.status.containerStatuses[0].ready==true)].spec.nodeName}", "--selector=app=web"))
	slices.Sort(got)
	slices.Sort(want)
	names := strings.Fields(e.get("pods", "{.items[*].metadata.name}", "--selector=app=web"))
	if !slices.Equal(got, want) || len(names) != len(want) {
		fail("of Pods %q there are ready ones on %q, want one on each of %q", names, got, want)
	}
}

const jobManifest = `
apiVersion: batch/v1
kind: Job
metadata: {name: $name}
spec:
  completions: $completions
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [$args]}
`

// A Job completes once as many of its Pods have succeeded as it says, and fails when too many have failed.
func job(e *env) {
	e.apply(jobManifest, "name", "good", "completions", "3", "args", `exit, "0"`)
	e.apply(jobManifest, "name", "bad", "completions", "1", "args", `exit, "3"`)
	e.wait("condition=Complete", "job/good")
	e.is("job/good", "{.status.succeeded}", "3")
	e.wait("condition=Failed", "job/bad")
	e.is("job/bad", `{.status.conditions[?(@.type=="Failed")].reason}`, "BackoffLimitExceeded")
}

// A Job runs as many Pods at the same time as its parallelism, never more, and fewer when that is lowered.
func jobParallelism(e *env) {
	pods := e.watch("/api/v1", "pods")
	// None of its four Pods ends by itself, so as many run in the end as the Job allows.
	e.apply(jobManifest, "name", "long", "completions", "4", "args", "wait")
	e.wait("jsonpath={.status.ready}=2", "job/long")
	e.is("pods", `{.items[?(@.status.phase=="Running")].metadata.ownerReferences[0].name}`, "long long")
	e.kubectl("patch", "job/long", "--type=merge", `--patch={"spec": {"parallelism": 1}}`)
	e.wait("jsonpath={.status.active}=1", "job/long")
	// Four Pods that end at once, two at a time.
	e.apply(jobManifest, "name", "short", "completions", "4", "args", `exit, "0"`)
	e.wait("condition=Complete", "job/short")
	changes := pods.changes()
	for _, name := range []string{"long", "short"} {
		if got := mostUnfinished(changes, name); got != 2 {
			fail("job/%s had up to %d unfinished Pods at the same time, want 2", name, got)
		}
	}
}

// mostUnfinished returns how many Pods of a Job were unfinished at the same time.
func mostUnfinished(changes []change, job string) int {
	most := 0
	unfinished := map[string]bool{}
	for _, c := range changes {
		if c.Object.Metadata.Labels["job-name"] != job {
			continue
		}
		delete(unfinished, c.Object.Metadata.UID)
		if c.Type != "DELETED" && !c.Object.ended() {
			unfinished[c.Object.Metadata.UID] = true
		}
		most = max(most, len(unfinished))
	}
	return most
}

// A CronJob creates a Job at the next full minute.
func cronJob(e *env) {
	e.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [exit, "0"]}
`)
	e.wait("jsonpath={.status.lastSuccessfulTime}", "cronjob/tick")
	if !strings.HasPrefix(e.get("jobs", "{.items[*].metadata.ownerReferences[*].name}"), "tick") {
		fail("the CronJob reports a Job that does not exist")
	}
}
