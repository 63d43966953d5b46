package verify

import (
	"context"
	"errors"
	"fmt"
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

func (e *env) workload(ctx context.Context, kind, spec, round string) error {
	return e.apply(ctx, workload, "kind", kind, "spec", spec, "round", round, "pod", "")
}

func (e *env) rolledOut(ctx context.Context, what string) error {
	_, err := e.kubectl(ctx, "rollout", "status", what, patience(ctx))
	return err
}

// A rolling update replaces all Pods, and never has more or fewer of them than its strategy allows.
func deploymentRollout(ctx context.Context, e *env) error {
	const spec = "replicas: 3\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}"
	const most, fewest = 4, 2
	if err := e.workload(ctx, "Deployment", spec, "1"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "deployment/web"); err != nil {
		return err
	}
	path := "/apis/apps/v1/namespaces/" + e.namespace
	version, err := e.version(ctx, path+"/replicasets")
	if err != nil {
		return err
	}
	before, err := e.get(ctx, "replicaset", "{.items[*].metadata.name}")
	if err != nil {
		return err
	}
	if err := e.workload(ctx, "Deployment", spec, "2"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "deployment/web"); err != nil {
		return err
	}
	sets, err := e.since(ctx, path+"/replicasets", version)
	if err != nil {
		return err
	}
	wanted := map[string]int{before: 3}
	for _, c := range sets {
		wanted[c.Object.Metadata.Name] = c.Object.Spec.Replicas
		total := 0
		for _, n := range wanted {
			total += n
		}
		if total > most {
			return fmt.Errorf("the ReplicaSets want %v: %d Pods, at most %d are allowed", wanted, total, most)
		}
	}
	if len(wanted) != 2 || wanted[before] != 0 {
		return fmt.Errorf("after the update the ReplicaSets want %v, not only Pods of a new one", wanted)
	}
	states, err := e.since(ctx, path+"/deployments", version)
	if err != nil {
		return err
	}
	for _, c := range states {
		if n := c.Object.Status.AvailableReplicas; n < fewest {
			return fmt.Errorf("%d Pods were available, at least %d are required", n, fewest)
		}
	}
	return nil
}

// A paused Deployment does not roll out changes until it is resumed, and undo rolls back to the previous one.
func deploymentPause(ctx context.Context, e *env) error {
	round := func(want string) error {
		if err := e.rolledOut(ctx, "deployment/web"); err != nil {
			return err
		}
		return until(ctx, func() error {
			return e.is(ctx, "replicaset", `{.items[?(@.status.availableReplicas==2)].spec.template.spec.containers[0].env[0].value}`, want)
		})
	}
	if err := e.workload(ctx, "Deployment", "replicas: 2", "1"); err != nil {
		return err
	}
	if err := round("1"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "rollout", "pause", "deployment/web"); err != nil {
		return err
	}
	if err := e.workload(ctx, "Deployment", "replicas: 2\n  paused: true", "2"); err != nil {
		return err
	}
	seen, err := e.get(ctx, "deployment/web", "{.metadata.generation}")
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.observedGeneration}="+seen, "deployment/web"); err != nil {
		return err
	}
	if err := e.is(ctx, "replicaset", "{.items[*].spec.template.spec.containers[0].env[0].value}", "1"); err != nil {
		return fmt.Errorf("while the Deployment is paused: %w", err)
	}
	if _, err := e.kubectl(ctx, "rollout", "resume", "deployment/web"); err != nil {
		return err
	}
	if err := round("2"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "rollout", "undo", "deployment/web"); err != nil {
		return err
	}
	return round("1")
}

// A ReplicaSet replaces a Pod that was deleted, and one that has lost its label.
func replicaSet(ctx context.Context, e *env) error {
	if err := e.workload(ctx, "ReplicaSet", "replicas: 2", "1"); err != nil {
		return err
	}
	const two = "jsonpath={.status.readyReplicas}=2"
	if err := e.wait(ctx, two, "replicaset/web"); err != nil {
		return err
	}
	before, err := e.get(ctx, "pods", "{.items[*].metadata.name}")
	if err != nil {
		return err
	}
	old := strings.Fields(before)
	if len(old) != 2 {
		return fmt.Errorf("there are pods %q, want 2", old)
	}
	if _, err := e.kubectl(ctx, "delete", "pod/"+old[0], "--now"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "label", "pod/"+old[1], "app-"); err != nil {
		return err
	}
	return until(ctx, func() error {
		after, err := e.get(ctx, "pods", `{.items[?(@.status.containerStatuses[0].ready==true)].metadata.name}`, "--selector=app=web")
		if err != nil {
			return err
		}
		if now := strings.Fields(after); len(now) != 2 || slices.Contains(now, old[0]) || slices.Contains(now, old[1]) {
			return fmt.Errorf("pods %q are ready, want two that are none of %q", now, old)
		}
		return nil
	})
}

const stateful = "serviceName: web\n  replicas: 3"

// A StatefulSet creates its Pods in order, each when the one before is ready, and deletes them in reverse order.
func statefulSetOrder(ctx context.Context, e *env) error {
	path := "/api/v1/namespaces/" + e.namespace + "/pods"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	if err := e.workload(ctx, "StatefulSet", stateful, "1"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "statefulset/web"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "scale", "statefulset/web", "--replicas=1"); err != nil {
		return err
	}
	if err := e.wait(ctx, "delete", "pod/web-1", "pod/web-2"); err != nil {
		return err
	}
	want := []string{"web-0 made", "web-0 ready", "web-1 made", "web-1 ready", "web-2 made", "web-2 ready", "web-2 gone", "web-1 gone"}
	return e.inOrder(ctx, path, version, want)
}

// inOrder requires that Pods come and go in an order.
func (e *env) inOrder(ctx context.Context, path, version string, want []string) error {
	return until(ctx, func() error {
		changes, err := e.since(ctx, path, version)
		if err != nil {
			return err
		}
		var got []string
		ready := map[string]bool{} // of those made since: others were before
		for _, c := range changes {
			name, uid := c.Object.Metadata.Name, c.Object.Metadata.UID
			switch {
			case c.Type == "ADDED":
				got, ready[uid] = append(got, name+" made"), false
			case c.Type == "DELETED":
				got = append(got, name+" gone")
			case c.Object.ready():
				if was, made := ready[uid]; made && !was {
					got, ready[uid] = append(got, name+" ready"), true
				}
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("in order, there was %q, want %q", got, want)
		}
		return nil
	})
}

// An update of a StatefulSet replaces Pods from the last one down to the partition, and goes on when that is lowered.
func statefulSetPartition(ctx context.Context, e *env) error {
	partition := func(n string) string {
		return stateful + "\n  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {partition: " + n + "}}"
	}
	if err := e.workload(ctx, "StatefulSet", partition("2"), "1"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.readyReplicas}=3", "statefulset/web"); err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + e.namespace + "/pods"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	if err := e.workload(ctx, "StatefulSet", partition("2"), "2"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "statefulset/web"); err != nil {
		return err
	}
	if err := e.inOrder(ctx, path, version, []string{"web-2 gone", "web-2 made", "web-2 ready"}); err != nil {
		return err
	}
	if version, err = e.version(ctx, path); err != nil {
		return err
	}
	if err := e.workload(ctx, "StatefulSet", partition("0"), "2"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "statefulset/web"); err != nil {
		return err
	}
	return e.inOrder(ctx, path, version, []string{"web-1 gone", "web-1 made", "web-1 ready", "web-0 gone", "web-0 made", "web-0 ready"})
}

// A DaemonSet has no Pod where its node selector does not match, and exactly one where it does, which is replaced when deleted.
func daemonSet(ctx context.Context, e *env) error {
	node := e.lastNode()
	if err := e.apply(ctx, workload, "kind", "DaemonSet", "spec", "", "round", "1", "pod", "nodeSelector: {"+e.label()+": here}"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.observedGeneration}=1", "daemonset/web"); err != nil {
		return err
	}
	for _, field := range []string{"{.status.desiredNumberScheduled}", "{.status.currentNumberScheduled}", "{.status.numberMisscheduled}"} {
		if err := e.is(ctx, "daemonset/web", field, "0"); err != nil {
			return err
		}
	}
	if err := e.labelNode(ctx, node, "here"); err != nil {
		return err
	}
	one := func() error { return e.readyOn(ctx, node) }
	if err := until(ctx, one); err != nil {
		return err
	}
	before, err := e.get(ctx, "pods", "{.items[*].metadata.uid}", "--selector=app=web")
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pods", "--now", "--selector=app=web"); err != nil {
		return err
	}
	if err := until(ctx, one); err != nil {
		return err
	}
	after, err := e.get(ctx, "pods", "{.items[*].metadata.uid}", "--selector=app=web")
	if err == nil && after == before {
		err = errors.New("the Pod was not replaced")
	}
	return err
}

// A DaemonSet has one Pod on each node.
func daemonSetEachNode(ctx context.Context, e *env) error {
	if err := e.severalNodes("on one, a DaemonSet looks like one Pod"); err != nil {
		return err
	}
	if err := e.workload(ctx, "DaemonSet", "", "1"); err != nil {
		return err
	}
	var nodes []string
	for _, n := range e.nodes {
		nodes = append(nodes, n.Name)
	}
	return until(ctx, func() error { return e.readyOn(ctx, nodes...) })
}

// readyOn requires that one Pod of a workload is ready on each of these nodes, and that there are no others.
func (e *env) readyOn(ctx context.Context, want ...string) error {
	ready, err := e.get(ctx, "pods", "{.items[?(@.status.containerStatuses[0].ready==true)].spec.nodeName}", "--selector=app=web")
	if err != nil {
		return err
	}
	all, err := e.get(ctx, "pods", "{.items[*].metadata.name}", "--selector=app=web")
	if err != nil {
		return err
	}
	got := strings.Fields(ready)
	slices.Sort(got)
	slices.Sort(want)
	if names := strings.Fields(all); !slices.Equal(got, want) || len(names) != len(want) {
		return fmt.Errorf("of Pods %q there are ready ones on %q, want one on each of %q", names, got, want)
	}
	return nil
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
func job(ctx context.Context, e *env) error {
	if err := e.apply(ctx, jobManifest, "name", "good", "completions", "3", "args", `exit, "0"`); err != nil {
		return err
	}
	if err := e.apply(ctx, jobManifest, "name", "bad", "completions", "1", "args", `exit, "3"`); err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Complete", "job/good"); err != nil {
		return err
	}
	if err := e.is(ctx, "job/good", "{.status.succeeded}", "3"); err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Failed", "job/bad"); err != nil {
		return err
	}
	return e.is(ctx, "job/bad", `{.status.conditions[?(@.type=="Failed")].reason}`, "BackoffLimitExceeded")
}

// A Job runs as many Pods at the same time as its parallelism, never more, and fewer when that is lowered.
func jobParallelism(ctx context.Context, e *env) error {
	path := "/api/v1/namespaces/" + e.namespace + "/pods"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	// None of its four Pods ends by itself, so as many run in the end as the Job allows.
	if err := e.apply(ctx, jobManifest, "name", "long", "completions", "4", "args", "wait"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.ready}=2", "job/long"); err != nil {
		return err
	}
	if err := e.is(ctx, "pods", `{.items[?(@.status.phase=="Running")].metadata.ownerReferences[0].name}`, "long long"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "patch", "job/long", "--type=merge", `--patch={"spec": {"parallelism": 1}}`); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.active}=1", "job/long"); err != nil {
		return err
	}
	// Four Pods that end at once, two at a time.
	if err := e.apply(ctx, jobManifest, "name", "short", "completions", "4", "args", `exit, "0"`); err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Complete", "job/short"); err != nil {
		return err
	}
	changes, err := e.since(ctx, path, version)
	if err != nil {
		return err
	}
	for name, want := range map[string]int{"long": 2, "short": 2} {
		if got := mostUnfinished(changes, name); got != want {
			return fmt.Errorf("job/%s had up to %d unfinished Pods at the same time, want %d", name, got, want)
		}
	}
	return nil
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
		if c.Type != "DELETED" && c.Object.Status.Phase != "Succeeded" && c.Object.Status.Phase != "Failed" {
			unfinished[c.Object.Metadata.UID] = true
		}
		most = max(most, len(unfinished))
	}
	return most
}

// A CronJob creates a Job at the next full minute.
func cronJob(ctx context.Context, e *env) error {
	err := e.apply(ctx, `
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
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.lastSuccessfulTime}", "cronjob/tick"); err != nil {
		return err
	}
	owners, err := e.get(ctx, "jobs", "{.items[*].metadata.ownerReferences[*].name}")
	if err == nil && !strings.HasPrefix(owners, "tick") {
		err = errors.New("the CronJob reports a Job that does not exist")
	}
	return err
}
