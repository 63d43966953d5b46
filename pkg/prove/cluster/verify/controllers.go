package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What controllers do for workloads, and when objects, nodes or a leader are gone.
var controllerChecks = group("controllers", nil, slices.Concat(workloadChecks, policyChecks, []Check{
	{Name: "garbage-collection", run: garbageCollection},
	{Name: "namespace-deletion", run: namespaceDeletion},
	{Name: "leader-election", Alone: true, Needs: []string{kubelet}, run: leaderElection},
	{Name: "node-lifecycle", Alone: true, Needs: []string{kubelet}, Limit: 5 * time.Minute, run: nodeLifecycle},
})...)

// Dependents of a deleted object go after it, before it or not at all: background, foreground or orphan deletion.
func garbageCollection(ctx context.Context, e *env) error {
	path := "/api/v1/namespaces/" + e.namespace + "/configmaps"
	// remove makes an object with a dependent, and deletes it.
	remove := func(cascade string) error {
		if _, err := e.kubectl(ctx, "create", "configmap", cascade); err != nil {
			return err
		}
		uid, err := e.get(ctx, "configmap/"+cascade, "{.metadata.uid}")
		if err != nil {
			return err
		}
		err = e.apply(ctx, `{apiVersion: v1, kind: ConfigMap, metadata: {name: $name-child,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: $name, uid: $uid, blockOwnerDeletion: true}]}}`, "name", cascade, "uid", uid)
		if err != nil {
			return err
		}
		_, err = e.kubectl(ctx, "delete", "configmap/"+cascade, "--cascade="+cascade, "--wait=false")
		return err
	}
	// gone removes an object, and requires that these objects are deleted in this order.
	gone := func(cascade string, want ...string) error {
		version, err := e.version(ctx, path)
		if err != nil {
			return err
		}
		if err := remove(cascade); err != nil {
			return err
		}
		return until(ctx, func() error {
			changes, err := e.since(ctx, path, version)
			var got []string
			for _, c := range changes {
				if c.Type == "DELETED" {
					got = append(got, c.Object.Metadata.Name)
				}
			}
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("%s deletion has deleted %q, want %q", cascade, got, want)
			}
			return err
		})
	}
	if err := gone("background", "background", "background-child"); err != nil {
		return err
	}
	if err := gone("foreground", "foreground-child", "foreground"); err != nil {
		return err
	}
	if err := gone("orphan", "orphan"); err != nil {
		return err
	}
	return until(ctx, func() error { return e.is(ctx, "configmap/orphan-child", "{.metadata.ownerReferences}", "") })
}

// A namespace goes with everything in it, and stays while an object in it has a finalizer.
func namespaceDeletion(ctx context.Context, e *env) error {
	name := e.namespace + "-more"
	if _, err := e.kubectl(ctx, "create", "namespace", name); err != nil {
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "namespace", name, "--ignore-not-found", "--wait=false")
		return err
	})
	data := "{apiVersion: v1, kind: ConfigMap, metadata: {name: data, namespace: " + name + ", finalizers: [example.com/kept]}}"
	if _, err := e.feed(ctx, data, "-n", name, "create", "-f", "-"); err != nil {
		return err
	}
	release := func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "-n", name, "patch", "configmap/data", "--type=merge", `--patch={"metadata": {"finalizers": null}}`)
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		if left, err := e.kubectl(ctx, "-n", name, "get", "configmap/data", "--ignore-not-found", "-o", "name"); err != nil || left == "" {
			return err
		}
		return release(ctx)
	})
	if _, err := e.kubectl(ctx, "delete", "namespace", name, "--wait=false"); err != nil {
		return err
	}
	if err := e.wait(ctx, `jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].status}=True`,
		"namespace/"+name); err != nil {
		return err
	}
	if err := e.refused(ctx, "because it is being terminated", "", "-n", name, "create", "configmap", "late"); err != nil {
		return err
	}
	if err := release(ctx); err != nil {
		return err
	}
	return e.wait(ctx, "delete", "namespace/"+name)
}

// A second controller manager waits as long as the first one renews its lease, and takes over when that stops.
func leaderElection(ctx context.Context, e *env) error {
	lease := func(ctx context.Context, field, before string) (string, error) {
		return e.leaseField(ctx, controllerManager, field, before)
	}
	first, err := lease(ctx, "holderIdentity", "")
	if err != nil {
		return err
	}
	node, _, _ := strings.Cut(first, "_") // and a random part
	processes, err := e.processes(node, controllerManager)
	if err != nil {
		return err
	}
	if err := e.secondManager(ctx, node); err != nil {
		return err
	}
	if err := renewsLease(controllerManager)(ctx, e); err != nil {
		return err
	}
	if now, err := lease(ctx, "holderIdentity", ""); err != nil || now != first {
		return errors.Join(err, fmt.Errorf("%s took the lease that %s renews", now, first))
	}
	e.cleanup(func(ctx context.Context) error { // the first one has lost the lease, so it ends and is restarted
		if err := resume(processes); err != nil {
			return err
		}
		second, err := lease(ctx, "holderIdentity", "")
		if err != nil || second == first {
			return err
		}
		if _, err := e.kubectl(ctx, "delete", "pod/second", "--now"); err != nil {
			return err
		}
		if e.ControlPlanes > 1 { // any of the others may have taken it
			return renewsLease(controllerManager)(ctx, e)
		}
		// Without the lease, nobody has to wait until it expires.
		if _, err := e.kubectl(ctx, "delete", "lease/"+controllerManager, "--namespace=kube-system"); err != nil {
			return err
		}
		_, err = lease(ctx, "holderIdentity", second)
		return err
	})
	if err := stop(processes); err != nil {
		return err
	}
	_, err = lease(ctx, "holderIdentity", first)
	return err
}

// secondManager runs another controller manager, and waits until it tries to get the lease.
func (e *env) secondManager(ctx context.Context, node string) error {
	text, err := e.get(ctx, "pod/"+controllerManager+"-"+node, "{.spec}", "--namespace=kube-system")
	if err != nil {
		return err
	}
	var spec struct {
		Containers []map[string]any `json:"containers"`
		Volumes    []any            `json:"volumes"`
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	for _, c := range spec.Containers {
		for _, port := range []string{"ports", "livenessProbe", "startupProbe", "readinessProbe"} {
			delete(c, port) // the first one has these ports
		}
		command, _ := c["command"].([]any)
		c["command"] = append(command, "--secure-port=0")
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "second"},
		"spec": map[string]any{"nodeName": node, "hostNetwork": true, "containers": spec.Containers, "volumes": spec.Volumes},
	})
	if err != nil {
		return err
	}
	if _, err := e.feed(ctx, string(manifest), "create", "-f", "-"); err != nil {
		return err
	}
	return until(ctx, func() error {
		said, err := e.kubectl(ctx, "logs", "second")
		if err == nil && !strings.Contains(strings.ToLower(said), "attempting to acquire leader lease") {
			err = errors.New("the second controller manager does not log that it tries to get the lease")
		}
		return err
	})
}

// A node whose kubelet has stopped is not ready and is tainted until the kubelet is back.
func nodeLifecycle(ctx context.Context, e *env) error {
	node := e.lastNode()
	processes, err := e.processes(node, kubelet)
	if err != nil {
		return err
	}
	back := func(ctx context.Context) error {
		if err := resume(processes); err != nil {
			return err
		}
		return e.wait(ctx, "condition=Ready", "node/"+node)
	}
	e.cleanup(back)
	if err := stop(processes); err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Ready=Unknown", "node/"+node); err != nil {
		return err
	}
	const unreachable = `{.spec.taints[?(@.effect=="NoSchedule")].key}`
	if err := e.wait(ctx, "jsonpath="+unreachable+"=node.kubernetes.io/unreachable", "node/"+node); err != nil {
		return err
	}
	if err := back(ctx); err != nil {
		return err
	}
	return until(ctx, func() error { return e.is(ctx, "node/"+node, unreachable, "") })
}
