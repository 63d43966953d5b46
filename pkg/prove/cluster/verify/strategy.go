package verify

import (
	"slices"
	"strings"
)

// A Deployment that recreates its Pods has no new one before all old ones have ended.
func deploymentRecreate(e *env) {
	const spec = "replicas: 2\n  strategy: {type: Recreate}"
	e.workload("Deployment", spec, "1")
	e.rolledOut("deployment/web")
	left := strings.Fields(e.get("pods", "{.items[*].metadata.uid}", "--selector=app=web"))
	pods := e.watch("/api/v1", "pods")
	e.workload("Deployment", spec, "2")
	e.rolledOut("deployment/web")
	made := 0
	for _, c := range pods.changes() {
		switch {
		case c.Type == "ADDED":
			if made++; len(left) > 0 {
				fail("pod %s was made while there were still %d old ones", c.Object.Metadata.Name, len(left))
			}
		case c.Type == "DELETED" || c.Object.ended():
			left = slices.DeleteFunc(left, func(uid string) bool { return uid == c.Object.Metadata.UID })
		}
	}
	if made != 2 {
		fail("%d Pods were made, want 2", made)
	}
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

// Pods that have lost their ReplicaSet run on, and one with the same selector takes them over instead of making others.
func adoption(e *env) {
	two := func() {
		e.workload("ReplicaSet", "replicas: 2", "1")
		e.wait("jsonpath={.status.readyReplicas}=2", "replicaset/web")
	}
	two()
	const uids, owners = "{.items[*].metadata.uid}", "{.items[*].metadata.ownerReferences[*].uid}"
	before := e.get("pods", uids)
	e.kubectl("delete", "replicaset/web", "--cascade=orphan")
	e.becomes("pods", owners, "")
	two()
	uid := e.get("replicaset/web", "{.metadata.uid}")
	e.becomes("pods", owners, uid+" "+uid)
	if after := e.get("pods", uids); after != before {
		fail("the Pods were %s, and are %s", before, after)
	}
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
