package verify

import (
	"context"
	"fmt"
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
func quota(ctx context.Context, e *env) error {
	if _, err := e.kubectl(ctx, "create", "quota", "two", "--hard=count/secrets=2"); err != nil {
		return err
	}
	used := func(want string) error {
		return e.wait(ctx, `jsonpath={.status.used.count/secrets}=`+want, "resourcequota/two")
	}
	if err := used("0"); err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		if _, err := e.kubectl(ctx, "create", "secret", "generic", name); err != nil {
			return err
		}
	}
	if err := used("2"); err != nil {
		return err
	}
	if err := e.refused(ctx, "exceeded quota: two", "", "create", "secret", "generic", "c"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "secret/a"); err != nil {
		return err
	}
	return until(ctx, func() error {
		_, err := e.kubectl(ctx, "create", "secret", "generic", "c")
		return err
	})
}

// A Pod is not evicted while its disruption budget has none to spare, and is evicted afterwards.
func disruptionBudget(ctx context.Context, e *env) error {
	if err := e.workload(ctx, "ReplicaSet", "replicas: 1", "1"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.currentHealthy}=1", "poddisruptionbudget/web"); err != nil {
		return err
	}
	name, err := e.get(ctx, "pods", "{.items[*].metadata.name}", "--selector=app=web")
	if err != nil {
		return err
	}
	eviction := e.expand(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "$pod", "namespace": "$namespace"}}`, "pod",
		name)
	evict := func() (string, error) {
		return e.feed(ctx, eviction, "create", "-f", "-", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/"+name+"/eviction")
	}
	if err := isRefused("would violate the pod's disruption budget")(evict()); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "scale", "replicaset/web", "--replicas=2"); err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.disruptionsAllowed}=1", "poddisruptionbudget/web"); err != nil {
		return err
	}
	if _, err := evict(); err != nil {
		return err
	}
	return e.wait(ctx, "delete", "pod/"+name)
}

// A claim is bound to the volume that fits, keeps it while a Pod uses it, and leaves it with its data.
func volumeBinding(ctx context.Context, e *env) error {
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", "persistentvolume", e.namespace+"-small", e.namespace+"-large", "--ignore-not-found")
		return err
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
		if err := e.apply(ctx, volume, "size", size, "storage", storage); err != nil {
			return err
		}
	}
	err := e.apply(ctx, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: $namespace, accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Mi}}}
`)
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.status.phase}=Bound", "persistentvolumeclaim/data"); err != nil {
		return err
	}
	large := "persistentvolume/" + e.namespace + "-large"
	if err := e.is(ctx, large, "{.spec.claimRef.namespace}/{.spec.claimRef.name}", e.namespace+"/data"); err != nil {
		return err
	}
	user := pod("web", "wait", container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{nodeName: "+e.lastNode()+", securityContext: {runAsUser: 0}, volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}"))
	if err := e.apply(ctx, user); err != nil {
		return err
	}
	if err := e.ready(ctx, "web"); err != nil {
		return err
	}
	if _, err := e.exec(ctx, "web", "write", "/data/note", "hello"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", "persistentvolumeclaim/data", "--wait=false"); err != nil {
		return err
	}
	if err := e.is(ctx, "persistentvolumeclaim/data", "{.status.phase}", "Bound"); err != nil {
		return fmt.Errorf("while a Pod uses it: %w", err)
	}
	if _, err := e.kubectl(ctx, "delete", "pod/web", "--now"); err != nil {
		return err
	}
	if err := e.wait(ctx, "delete", "persistentvolumeclaim/data"); err != nil {
		return err
	}
	return e.wait(ctx, "jsonpath={.status.phase}=Released", large)
}

// A Job that has finished is deleted after the time that it says.
func ttlAfterFinished(ctx context.Context, e *env) error {
	for name, ttl := range map[string]string{"brief": "ttlSecondsAfterFinished: 1", "kept": "suspend: false"} {
		err := e.apply(ctx, strings.Replace(jobManifest, "parallelism: 2", ttl, 1), "name", name, "completions", "1", "args", `exit, "0"`)
		if err != nil {
			return err
		}
	}
	if err := e.wait(ctx, "condition=Complete", "job/kept"); err != nil {
		return err
	}
	if err := e.wait(ctx, "delete", "job/brief"); err != nil {
		return err
	}
	return e.is(ctx, "job/kept", "{.status.succeeded}", "1")
}

// An autoscaler adds a Pod when those there are use more than they should.
func autoscaling(ctx context.Context, e *env) error {
	err := e.apply(ctx, `
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
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "jsonpath={.spec.replicas}=2", "deployment/web"); err != nil {
		return err
	}
	return until(ctx, func() error { // it scales first, and says why later
		return e.is(ctx, "horizontalpodautoscaler/web", `{.status.conditions[?(@.type=="ScalingActive")].reason}`, "ValidMetricFound")
	})
}
