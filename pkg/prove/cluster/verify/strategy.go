package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Deployment that recreates its Pods has no new one before all old ones have ended.
func deploymentRecreate(ctx context.Context, e *env) error {
	const spec = "replicas: 2\n  strategy: {type: Recreate}"
	if err := e.workload(ctx, "Deployment", spec, "1"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "deployment/web"); err != nil {
		return err
	}
	old, err := e.get(ctx, "pods", "{.items[*].metadata.uid}", "--selector=app=web")
	if err != nil {
		return err
	}
	left := strings.Fields(old)
	path := "/api/v1/namespaces/" + e.namespace + "/pods"
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	if err := e.workload(ctx, "Deployment", spec, "2"); err != nil {
		return err
	}
	if err := e.rolledOut(ctx, "deployment/web"); err != nil {
		return err
	}
	changes, err := e.since(ctx, path, version)
	if err != nil {
		return err
	}
	made := 0
	for _, c := range changes {
		uid, phase := c.Object.Metadata.UID, c.Object.Status.Phase
		switch {
		case c.Type == "ADDED":
			if made++; len(left) > 0 {
				return fmt.Errorf("pod %s was made while there were still %d old ones", c.Object.Metadata.Name, len(left))
			}
		case c.Type == "DELETED" || phase == "Succeeded" || phase == "Failed":
			left = slices.DeleteFunc(left, func(one string) bool { return one == uid })
		}
	}
	if made != 2 {
		return fmt.Errorf("%d Pods were made, want 2", made)
	}
	return nil
}

// A ReplicaSet with too many Pods deletes those that are cheapest to delete.
func scaleDown(ctx context.Context, e *env) error {
	if err := e.workload(ctx, "ReplicaSet", "replicas: 3", "1"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.readyReplicas}=3", "replicaset/web"); err != nil {
		return err
	}
	all, err := e.get(ctx, "pods", "{.items[*].metadata.name}", "--selector=app=web")
	if err != nil {
		return err
	}
	pods := strings.Fields(all)
	slices.Sort(pods)
	dear := pods[len(pods)-1]
	if _, err := e.kubectl(ctx, "annotate", "pod/"+dear, "controller.kubernetes.io/pod-deletion-cost=100"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "scale", "replicaset/web", "--replicas=1"); err != nil {
		return err
	}
	return until(ctx, func() error { return e.is(ctx, "pods", "{.items[*].metadata.name}", dear) })
}

// A StatefulSet with OnDelete has a Pod of the new revision only where the old one was deleted.
func statefulSetOnDelete(ctx context.Context, e *env) error {
	const spec = "serviceName: web\n  replicas: 2\n  podManagementPolicy: Parallel\n  updateStrategy: {type: OnDelete}"
	if err := e.workload(ctx, "StatefulSet", spec, "1"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.readyReplicas}=2", "statefulset/web"); err != nil {
		return err
	}
	if err := e.workload(ctx, "StatefulSet", spec, "2"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.observedGeneration}=2", "statefulset/web"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pod/web-1", "--now"); err != nil {
		return err
	}
	return until(ctx, func() error {
		const round = `{range .items[?(@.status.containerStatuses[0].ready==true)]}{.metadata.name}={.spec.containers[0].env[0].value} {end}`
		return e.is(ctx, "pods", round, "web-0=1 web-1=2")
	})
}

// Pods that have lost their ReplicaSet run on, and one with the same selector takes them over instead of making others.
func adoption(ctx context.Context, e *env) error {
	two := func() error {
		if err := e.workload(ctx, "ReplicaSet", "replicas: 2", "1"); err != nil {
			return err
		}
		return e.wait(ctx, "jsonpath={.status.readyReplicas}=2", "replicaset/web")
	}
	if err := two(); err != nil {
		return err
	}
	const uids, owners = "{.items[*].metadata.uid}", "{.items[*].metadata.ownerReferences[*].uid}"
	before, err := e.get(ctx, "pods", uids)
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "replicaset/web", "--cascade=orphan"); err != nil {
		return err
	}
	if err := until(ctx, func() error { return e.is(ctx, "pods", owners, "") }); err != nil {
		return err
	}
	if err := two(); err != nil {
		return err
	}
	uid, err := e.get(ctx, "replicaset/web", "{.metadata.uid}")
	if err != nil {
		return err
	}
	if err := until(ctx, func() error { return e.is(ctx, "pods", owners, uid+" "+uid) }); err != nil {
		return err
	}
	after, err := e.get(ctx, "pods", uids)
	if err == nil && after != before {
		err = fmt.Errorf("the Pods were %s, and are %s", before, after)
	}
	return err
}

// A ReplicationController, the oldest of the controllers, replaces a Pod that was deleted.
func replicationController(ctx context.Context, e *env) error {
	err := e.apply(ctx, strings.NewReplacer("apps/v1", "v1", "{matchLabels: {app: web}}", "{app: web}").Replace(workload),
		"kind", "ReplicationController", "spec", "replicas: 1", "round", "1", "pod", "")
	if err != nil {
		return err
	}
	const ready = `{.items[?(@.status.containerStatuses[0].ready==true)].metadata.uid}`
	var before string
	err = until(ctx, func() (err error) {
		if before, err = e.get(ctx, "pods", ready); err == nil && before == "" {
			err = errors.New("no Pod is ready")
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "pods", "--now", "--selector=app=web"); err != nil {
		return err
	}
	return until(ctx, func() error {
		after, err := e.get(ctx, "pods", ready)
		if err == nil && (after == "" || after == before) {
			err = errors.New("the Pod was not replaced")
		}
		return err
	})
}
