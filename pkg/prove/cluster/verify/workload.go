package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What the controllers make of objects that want Pods.
var workloadChecks = []Check{
	{Name: "deployment-rollout", run: deploymentRollout},
	{Name: "deployment-pause", run: deploymentPause},
	{Name: "replicaset", run: replicaSet},
	{Name: "statefulset-order", run: statefulSetOrder},
	{Name: "statefulset-partition", run: statefulSetPartition},
	{Name: "daemonset", run: daemonSet},
	{Name: "job", run: job},
	{Name: "cronjob", run: cronJob},
}

// workload is a Deployment, ReplicaSet, StatefulSet or DaemonSet whose Pods serve, and say which round of changes they are of.
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
        imagePullPolicy: Never
        args: [serve]
        env: [{name: ROUND, value: "$round"}]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
`

func (e *env) workload(ctx context.Context, kind, spec, round string) error {
	return e.apply(ctx, workload, "kind", kind, "spec", spec, "round", round)
}

func (e *env) rolledOut(ctx context.Context, what string) error {
	_, err := e.kubectl(ctx, "rollout", "status", what, patience(ctx))
	return err
}

// A rolling update replaces all Pods, and meanwhile there are never more or fewer of them than it may have.
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
			return fmt.Errorf("the ReplicaSets want %v: %d Pods, where there may be %d", wanted, total, most)
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
			return fmt.Errorf("%d Pods were available, where there have to be %d", n, fewest)
		}
	}
	return nil
}

// Changes of a Deployment that is paused wait, and one that was undone is as it was before.
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

// A ReplicaSet replaces a Pod that is gone by another one, and one that has lost its label, too.
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
			return fmt.Errorf("pods %q are ready, want two others than %q", now, old)
		}
		return nil
	})
}

const stateful = "serviceName: web\n  replicas: 3"

// Pods of a StatefulSet are made one after the other, each when the one before is ready, and end in reverse order.
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

// An update of a StatefulSet goes from the last Pod down to the partition, and on when that is lowered.
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

// A DaemonSet has one Pod on each node, and another if that is gone.
func daemonSet(ctx context.Context, e *env) error {
	if err := e.workload(ctx, "DaemonSet", "", "1"); err != nil {
		return err
	}
	var want []string
	for _, n := range e.nodes {
		want = append(want, n.Name)
	}
	slices.Sort(want)
	oneEach := func() error {
		if err := e.rolledOut(ctx, "daemonset/web"); err != nil {
			return err
		}
		nodes, err := e.get(ctx, "pods", "{.items[?(@.status.containerStatuses[0].ready==true)].spec.nodeName}")
		got := strings.Fields(nodes)
		if slices.Sort(got); err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("there are ready Pods on %q, want one on each of %q", got, want)
		}
		return err
	}
	if err := until(ctx, oneEach); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pods", "--now", "--selector=app=web", "--field-selector=spec.nodeName="+e.lastNode()); err != nil {
		return err
	}
	return until(ctx, oneEach)
}

// A Job has as many Pods succeed as it says, no more than that at once, and fails when too many failed.
func job(ctx context.Context, e *env) error {
	const manifest = `
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
      - {name: main, image: $image, imagePullPolicy: Never, args: [exit, "$code"]}
`
	if err := e.apply(ctx, manifest, "name", "good", "completions", "3", "code", "0"); err != nil {
		return err
	}
	if err := e.apply(ctx, manifest, "name", "bad", "completions", "1", "code", "3"); err != nil {
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

// A CronJob makes a Job at the next full minute.
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
          - {name: main, image: $image, imagePullPolicy: Never, args: [exit, "0"]}
`)
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.lastSuccessfulTime}", "cronjob/tick"); err != nil {
		return err
	}
	owners, err := e.get(ctx, "jobs", "{.items[*].metadata.ownerReferences[*].name}")
	if err == nil && !strings.HasPrefix(owners, "tick") {
		err = errors.New("there is no Job of the CronJob, though it says so")
	}
	return err
}
