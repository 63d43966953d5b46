package verify

import (
	"encoding/json"
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
func garbageCollection(e *env) {
	// remove creates an object with a dependent, and deletes it.
	remove := func(cascade string) {
		e.kubectl("create", "configmap", cascade)
		uid := e.get("configmap/"+cascade, "{.metadata.uid}")
		e.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: $name-child,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: $name, uid: $uid, blockOwnerDeletion: true}]}}`, "name", cascade, "uid", uid)
		e.kubectl("delete", "configmap/"+cascade, "--cascade="+cascade, "--wait=false")
	}
	// gone removes an object, and waits until these objects are deleted in this order.
	gone := func(cascade string, want ...string) {
		configMaps := e.watch("/api/v1", "configmaps")
		remove(cascade)
		e.until(func() {
			if got := configMaps.deleted(); !slices.Equal(got, want) {
				fail("%s deletion has deleted %q, want %q", cascade, got, want)
			}
		})
	}
	gone("background", "background", "background-child")
	gone("foreground", "foreground-child", "foreground")
	gone("orphan", "orphan")
	e.becomes("configmap/orphan-child", "{.metadata.ownerReferences}", "")
}

// A namespace goes with everything in it, and stays while an object in it has a finalizer.
func namespaceDeletion(e *env) {
	name := e.namespace + "-more"
	e.kubectl("create", "namespace", name)
	e.cleanup(func() { e.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false") })
	data := "{apiVersion: v1, kind: ConfigMap, metadata: {name: data, namespace: " + name + ", finalizers: [example.com/kept]}}"
	e.feed(data, "-n", name, "create", "-f", "-")
	release := func() {
		e.kubectl("-n", name, "patch", "configmap/data", "--type=merge", `--patch={"metadata": {"finalizers": null}}`)
	}
	e.cleanup(func() {
		if e.kubectl("-n", name, "get", "configmap/data", "--ignore-not-found", "-o", "name") != "" {
			release()
		}
	})
	e.kubectl("delete", "namespace", name, "--wait=false")
	e.wait(`jsonpath={.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].status}=True`, "namespace/"+name)
	e.refused("because it is being terminated", "-n", name, "create", "configmap", "late")
	release()
	e.wait("delete", "namespace/"+name)
}

// A second controller manager waits as long as the first one renews its lease, and takes over when that stops.
func leaderElection(e *env) {
	holder := func(before string) string { return e.leaseField(controllerManager, "holderIdentity", before) }
	renewed := renewsLease(controllerManager)
	first := holder("")
	node, _, _ := strings.Cut(first, "_") // and a random part
	processes := e.processes(node, controllerManager)
	e.secondManager(node)
	renewed(e)
	if now := holder(""); now != first {
		fail("%s took the lease that %s renews", now, first)
	}
	e.cleanup(func() { // the first one has lost the lease, so it ends and is restarted
		resume(processes)
		second := holder("")
		if second == first {
			return
		}
		e.kubectl("delete", "pod/second", "--now")
		if e.ControlPlanes > 1 { // any of the others may have taken it
			renewed(e)
			return
		}
		// Without the lease, nobody has to wait until it expires.
		e.kubectl("delete", "lease/"+controllerManager, "--namespace=kube-system")
		holder(second)
	})
	stop(processes)
	holder(first)
}

// secondManager runs another controller manager, and waits until it tries to get the lease.
func (e *env) secondManager(node string) {
	var first struct {
		Containers []manifest
		Volumes    []any
	}
	text := e.get("pod/"+controllerManager+"-"+node, "{.spec}", "--namespace=kube-system")
	noError(json.Unmarshal([]byte(text), &first))
	for _, c := range first.Containers {
		for _, port := range []string{"ports", "livenessProbe", "startupProbe", "readinessProbe"} {
			delete(c, port) // the first one has these ports
		}
		command, _ := c["command"].([]any)
		c["command"] = append(command, "--secure-port=0")
	}
	second := document(manifest{
		"apiVersion": "v1", "kind": "Pod", "metadata": manifest{"name": "second"},
		"spec": manifest{"nodeName": node, "hostNetwork": true, "containers": first.Containers, "volumes": first.Volumes},
	})
	e.feed(second, "create", "-f", "-")
	e.until(func() {
		said := e.kubectl("logs", "second")
		if !strings.Contains(strings.ToLower(said), "attempting to acquire leader lease") {
			fail("the second controller manager does not log that it tries to get the lease")
		}
	})
}

// A node whose kubelet has stopped is not ready and is tainted until the kubelet is back.
func nodeLifecycle(e *env) {
	node := e.lastNode()
	processes := e.processes(node, kubelet)
	back := func() {
		resume(processes)
		e.wait("condition=Ready", "node/"+node)
	}
	e.cleanup(back)
	stop(processes)
	e.wait("condition=Ready=Unknown", "node/"+node)
	const unreachable = `{.spec.taints[?(@.effect=="NoSchedule")].key}`
	e.wait("jsonpath="+unreachable+"=node.kubernetes.io/unreachable", "node/"+node)
	back()
	e.becomes("node/"+node, unreachable, "")
}
