package verify

import (
	"strings"
)

// What controllers do for objects that limit or serve others: quotas, budgets, volumes, certificates, autoscalers.
var policyChecks = []Check{
	{Name: "quota", run: quota},
	{Name: "disruption-budget", Needs: []string{scheduler, kubelet}, run: disruptionBudget},
	{Name: "volume-binding", Needs: []string{scheduler, kubelet}, run: volumeBinding},
	{Name: "certificates", run: certificates},
	{Name: "ttl-after-finished", Needs: []string{scheduler, kubelet}, run: ttlAfterFinished},
}

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

// A Pod is not evicted while its disruption budget has none to spare, and is evicted afterwards.
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
	e.apply(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: $namespace, accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Mi}}}
`)
	e.wait("jsonpath={.status.phase}=Bound", "persistentvolumeclaim/data")
	large := "persistentvolume/" + e.namespace + "-large"
	e.is(large, "{.spec.claimRef.namespace}/{.spec.claimRef.name}", e.namespace+"/data")
	user := pod("web", "wait", container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{nodeName: "+e.lastNode()+", securityContext: {runAsUser: 0}, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}"))
	e.apply(user)
	e.ready("web")
	e.exec("web", "write", "/data/note", "hello")
	e.kubectl("delete", "persistentvolumeclaim/data", "--wait=false")
	during("while a Pod uses it", func() { e.is("persistentvolumeclaim/data", "{.status.phase}", "Bound") })
	e.kubectl("delete", "pod/web", "--now")
	e.wait("delete", "persistentvolumeclaim/data")
	e.wait("jsonpath={.status.phase}=Released", large)
}

// A Job that has finished is deleted after the time that it says.
func ttlAfterFinished(e *env) {
	for name, ttl := range map[string]string{"brief": "ttlSecondsAfterFinished: 1", "kept": "suspend: false"} {
		e.apply(strings.Replace(jobManifest, "parallelism: 2", ttl, 1), "name", name, "completions", "1", "args", `exit, "0"`)
	}
	e.wait("condition=Complete", "job/kept")
	e.wait("delete", "job/brief")
	e.is("job/kept", "{.status.succeeded}", "1")
}

// An autoscaler adds a Pod when those there are use more than they should.
func autoscaling(e *env) {
	e.apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [allocate, "64"], resources: {requests: {memory: 32Mi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]
`)
	e.wait("jsonpath={.spec.replicas}=2", "deployment/web")
	// It scales first, and says why later.
	e.becomes("horizontalpodautoscaler/web", `{.status.conditions[?(@.type=="ScalingActive")].reason}`, "ValidMetricFound")
}
