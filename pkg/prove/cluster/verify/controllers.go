package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// podsNeed are the components that Pods need to run.
var podsNeed = []string{scheduler, kubelet}

// What controllers do for workloads and other objects, and when objects, nodes or a leader are gone.
var controllerChecks = group("controllers", nil,
	Check{Name: "deployment-rollout", Needs: podsNeed, run: deploymentRollout},
	Check{Name: "deployment-pause", Needs: podsNeed, run: deploymentPause},
	Check{Name: "deployment-recreate", Needs: podsNeed, run: deploymentRecreate},
	Check{Name: "replicaset", Needs: podsNeed, run: replicaSet},
	Check{Name: "scale-down", Needs: podsNeed, run: scaleDown},
	Check{Name: "adoption", Needs: podsNeed, run: adoption},
	Check{Name: "replication-controller", Needs: podsNeed, run: replicationController},
	Check{Name: "statefulset-order", Needs: podsNeed, run: statefulSetOrder},
	Check{Name: "statefulset-partition", Needs: podsNeed, run: statefulSetPartition},
	Check{Name: "statefulset-on-delete", Needs: podsNeed, run: statefulSetOnDelete},
	Check{Name: "daemonset", Needs: podsNeed, run: daemonSet},
	Check{Name: "daemonset-each-node", Skips: true, Needs: podsNeed, run: daemonSetEachNode},
	Check{Name: "job", Needs: podsNeed, run: job},
	Check{Name: "job-parallelism", Needs: podsNeed, run: jobParallelism},
	Check{Name: "cronjob", Long: true, Needs: podsNeed, run: cronJob},
	Check{Name: "quota", run: quota},
	Check{Name: "disruption-budget", Needs: podsNeed, run: disruptionBudget},
	Check{Name: "volume-binding", Needs: podsNeed, run: volumeBinding},
	Check{Name: "certificates", run: certificates},
	Check{Name: "ttl-after-finished", Needs: podsNeed, run: ttlAfterFinished},
	Check{Name: "garbage-collection", run: garbageCollection},
	Check{Name: "namespace-deletion", run: namespaceDeletion},
	Check{Name: "leader-election", Alone: true, Needs: []string{kubelet}, run: leaderElection},
	Check{Name: "node-lifecycle", Alone: true, Needs: []string{kubelet}, Limit: 5 * time.Minute, run: nodeLifecycle},
)

// A quota counts the objects of a namespace, and refuses one too many until another is gone.
func quota(e *env) {
	e.kubectl("create", "quota", "two", "--hard=count/secrets=2")
	used := func(want string) {
		e.wait(`jsonpath={.status.used.count/secrets}=`+want, "resourcequota/two")
	}
	used("0")
	for _, name := range []string{"a", "b"} {
		e.kubectl("create", "secret", "generic", name)
	}
	used("2")
	e.refused("exceeded quota: two", "create", "secret", "generic", "c")
	e.kubectl("delete", "secret/a")
	e.until(func() { e.kubectl("create", "secret", "generic", "c") })
}

// A Pod is evicted only if its disruption budget can spare one.
func disruptionBudget(e *env) {
	e.workload("ReplicaSet", "replicas: 1", "1")
	e.kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
	e.wait("jsonpath={.status.currentHealthy}=1", "poddisruptionbudget/web")
	name := e.get("pods", "{.items[*].metadata.name}", "--selector=app=web")
	eviction := e.expand(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "$pod", "namespace": "$namespace"}}`,
		"pod", name)
	evict := func() string {
		return e.feed(eviction, "create", "-f", "-", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/"+name+"/eviction")
	}
	refused("would violate the pod's disruption budget", evict)
	e.kubectl("scale", "replicaset/web", "--replicas=2")
	e.wait("jsonpath={.status.disruptionsAllowed}=1", "poddisruptionbudget/web")
	evict()
	e.wait("delete", "pod/"+name)
}

// A claim is bound to the volume that fits, keeps it while a Pod uses it, and leaves it with its data.
func volumeBinding(e *env) {
	folder := e.NodeFile(e.lastNode(), "tmp", e.namespace+"-large")
	e.cleanup(func() { noError(os.RemoveAll(folder)) })
	e.cleanup(func() {
		e.kubectl("delete", "persistentvolume", e.namespace+"-small", e.namespace+"-large", "--ignore-not-found")
	})
	const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: $namespace-$size}
spec:
  storageClassName: $namespace
  capacity: {storage: $storage}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /tmp/$namespace-$size, type: DirectoryOrCreate}
`
	for size, storage := range map[string]string{"small": "1Mi", "large": "8Mi"} {
		e.apply(volume, "size", size, "storage", storage)
	}
	const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name}
spec: {storageClassName: $namespace, accessModes: [ReadWriteOnce], resources: {requests: {storage: $storage}}}
`
	e.apply(claim, "name", "data", "storage", "4Mi")
	e.apply(claim, "name", "idle", "storage", "16Mi") // more than there is
	e.wait("jsonpath={.status.phase}=Bound", "persistentvolumeclaim/data")
	large := "persistentvolume/" + e.namespace + "-large"
	e.is(large, "{.spec.claimRef.namespace}/{.spec.claimRef.name}", e.namespace+"/data")
	user := pod("web", "wait", container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{nodeName: "+e.lastNode()+", securityContext: {runAsUser: 0}, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}"))
	e.apply(user)
	e.ready("web")
	e.exec("web", "write", "/data/note", "hello")
	e.kubectl("delete", "persistentvolumeclaim/data", "--wait=false")
	e.kubectl("delete", "persistentvolumeclaim/idle") // by then, the controller has had its chance at both
	during("while a Pod uses it", func() { e.is("persistentvolumeclaim/data", "{.status.phase}", "Bound") })
	e.kubectl("delete", "pod/web", "--now")
	e.wait("delete", "persistentvolumeclaim/data")
	e.wait("jsonpath={.status.phase}=Released", large)
	if text := must(os.ReadFile(filepath.Join(folder, "note"))); string(text) != "hello\n" {
		fail("the volume holds %q after its claim is gone", text)
	}
}

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

// A second controller manager waits while the first renews its lease, and takes over when the first stops.
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
	e.cleanup(func() { // the first has lost the lease, so it ends and is restarted
		resume(processes)
		second := holder("")
		if second == first {
			return
		}
		e.kubectl("delete", "pod/second", "--now")
		if e.ControlPlanes > 1 { // any other controller manager may have taken the lease
			renewed(e)
			return
		}
		// If the lease is deleted, the first need not wait until it expires.
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
			delete(c, port) // the first has these ports
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
