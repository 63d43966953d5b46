package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What the API server does with requests, from authentication to validation, and with objects that it stores.
var apiChecks = group("api", nil, append([]Check{
	{Name: "authentication", run: authentication},
	{Name: "authorization", run: authorization},
	{Name: "admission", run: admission},
	{Name: "validation", run: validation},
	{Name: "storage", run: storage},
	{Name: "conflict", run: conflict},
	{Name: "watch", run: watch},
	{Name: "selectors", run: selectors},
	{Name: "patch", run: patch},
	{Name: "custom-resource", run: customResource},
	{Name: "aggregation", Needs: []string{kubelet, kubeProxy, metricsServer}, run: aggregation},
	{Name: "conversion", run: conversion},
	{Name: "open-api", run: openAPI},
	{Name: "apply-conflict", run: applyConflict},
	{Name: "bookmarks", run: bookmarks},
	{Name: "node-authorization", Needs: []string{kubelet}, run: nodeAuthorization},
	{Name: "admission-policy", run: admissionPolicy},
	{Name: "webhooks", run: webhooks},
}, writtenChecks...)...)

// as runs kubectl with a token and no other credentials, in a kubeconfig that only root can read.
func (e *env) as(token string, args ...string) string {
	found := e.kubectl("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster}")
	text := document(manifest{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{manifest{"name": "it", "cluster": json.RawMessage(found)}},
		"users":    []any{manifest{"name": "it", "user": manifest{"token": token}}},
		"contexts": []any{manifest{"name": "it", "context": manifest{"cluster": "it", "user": "it"}}},
	})
	dir := must(os.MkdirTemp("", "slipway-verify-"))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kubeconfig")
	noError(os.WriteFile(file, []byte(text), 0o600))
	return must(e.runKubectl(e.ctx, file, "", args...))
}

// token returns a token of the namespace's service account.
func (e *env) token() string { return strings.TrimSpace(e.kubectl("create", "token", "default")) }

// A service account's token authenticates it, and a token with one letter changed does not.
func authentication(e *env) {
	token := e.token()
	who := e.as(token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if want := "system:serviceaccount:" + e.namespace + ":default"; who != want {
		fail("the token belongs to %q, want %q", who, want)
	}
	refused("must be logged in", func() string { return e.as(flip(token), "get", "configmaps") })
}

// flip changes a letter in the signature of a token.
func flip(token string) string {
	at := strings.LastIndexByte(token, '.') + 10
	letter := "A"
	if token[at] == 'A' {
		letter = "B"
	}
	return token[:at] + letter + token[at+1:]
}

// A service account may read nothing until a role binding allows it, and then no more than that.
func authorization(e *env) {
	token := e.token()
	refused("is forbidden", func() string { return e.as(token, "get", "configmaps") })
	e.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount="+e.namespace+":default")
	e.until(func() { e.as(token, "get", "configmaps") })
	refused("is forbidden", func() string { return e.as(token, "get", "secrets") })
}

// A LimitRange sets the limit of containers that have none, and refuses higher ones.
func admission(e *env) {
	e.apply(`
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {memory: 32Mi}, max: {memory: 64Mi}}
`)
	e.until(func() {
		got := e.feed(e.expand(pod("web", "wait")), "create", "--dry-run=server", "-f", "-", "-o",
			"jsonpath={.spec.containers[0].resources.limits.memory}")
		if got != "32Mi" {
			fail("the container's limit is %q, want the LimitRange's 32Mi", got)
		}
	})
	large := pod("web", "wait", container("resources: {limits: {memory: 65Mi}}"))
	refused("maximum memory usage per Container is 64Mi", func() string {
		return e.feed(e.expand(large), "create", "--dry-run=server", "-f", "-")
	})
}

// A value out of range and a field that does not exist are refused.
func validation(e *env) {
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {port: $port}
  $more
`
	refused("Invalid value: 70000", func() string {
		return e.feed(e.expand(service, "port", "70000", "more", ""), "create", "--validate=false", "-f", "-")
	})
	refused(`unknown field "spec.prots"`, func() string {
		return e.feed(e.expand(service, "port", "80", "more", "prots: []"), "create", "--validate=strict", "-f", "-")
	})
	e.apply(service, "port", "80", "more", "")
}

// An object is read back as it was stored, as it was updated, and not after it was deleted.
func storage(e *env) {
	for _, text := range []string{"Grüße, 世界\nand a second line", strings.Repeat("0123456789abcdef", 1<<14)} { // short, and 256 KiB
		// Not by apply, which would keep a second copy in an annotation of limited size.
		object := manifest{"apiVersion": "v1", "kind": "ConfigMap", "metadata": manifest{"name": "data"}, "data": manifest{"text": text}}
		command := "create"
		if strings.HasPrefix(text, "0") {
			command = "replace"
		}
		e.feed(document(object), command, "-f", "-")
		got := e.kubectl("get", "configmap/data", "-o", "jsonpath={.data.text}")
		if got != text {
			fail("%d bytes were stored, and %d different ones read back", len(text), len(got))
		}
	}
	e.kubectl("delete", "configmap/data")
	e.refused("NotFound", "get", "configmap/data")
}

// An update of an object that has changed in between is refused, and the other change stays.
func conflict(e *env) {
	e.kubectl("create", "configmap", "data", "--from-literal=by=nobody")
	read := e.kubectl("get", "configmap/data", "-o", "json")
	by := func(who string) string {
		m := parse(read) // with its resource version
		m["data"] = manifest{"by": who}
		return document(m)
	}
	e.feed(by("one"), "replace", "-f", "-")
	refused("the object has been modified", func() string { return e.feed(by("other"), "replace", "-f", "-") })
	e.is("configmap/data", "{.data.by}", "one")
}

// A watch from a resource version reports all later changes in order, and no earlier one.
func watch(e *env) {
	e.kubectl("create", "configmap", "before")
	configMaps := e.watch("/api/v1", "configmaps")
	for _, args := range [][]string{
		{"create", "configmap", "data"}, {"label", "configmap", "data", "a=b"}, {"create", "configmap", "more"}, {"delete", "configmap", "data"},
	} {
		e.kubectl(args...)
	}
	e.until(func() {
		var got []string
		for _, c := range configMaps.changes() {
			got = append(got, c.Type+" "+c.Object.Metadata.Name)
		}
		if want := []string{"ADDED data", "MODIFIED data", "ADDED more", "DELETED data"}; !slices.Equal(got, want) {
			fail("the watch reports %q, want %q", got, want)
		}
	})
}

// Label selectors, by equality and by set, and field selectors narrow lists.
func selectors(e *env) {
	for name, labels := range map[string]string{"one": "tier=front", "two": "tier=back", "three": "tier=back,old=very"} {
		e.apply(`{apiVersion: v1, kind: Secret, type: $type, metadata: {name: $name, labels: {$labels}}}`,
			"name", name, "type", "example.com/"+name, "labels", strings.ReplaceAll(labels, "=", ": "))
	}
	for _, tt := range []struct{ flag, want string }{
		{"--selector=tier=back", "three two"},
		{"--selector=tier in (front,middle)", "one"},
		{"--selector=tier,!old", "one two"},
		{"--selector=tier!=front,tier", "three two"},
		{"--field-selector=metadata.name=two", "two"},
		{"--field-selector=type=example.com/three", "three"},
		{"--field-selector=metadata.namespace=elsewhere", ""},
	} {
		if got := e.get("secrets", "{.items[*].metadata.name}", tt.flag); got != tt.want {
			fail("%s finds %q, want %q", tt.flag, got, tt.want)
		}
	}
}

// Each kind of patch does what it says, and server-side apply keeps another manager's fields unless forced.
func patch(e *env) {
	e.apply(`
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {name: a, port: 80}
`)
	for _, tt := range []struct{ kind, patch, path, want string }{
		{"strategic", `{"spec": {"ports": [{"name": "b", "port": 81}]}}`, "{.spec.ports[*].port}", "81 80"},
		{"merge", `{"spec": {"ports": [{"name": "c", "port": 82}]}}`, "{.spec.ports[*].port}", "82"},
		{"json", `[{"op": "test", "path": "/spec/ports/0/port", "value": 82}, {"op": "replace", "path": "/spec/ports/0/port", "value": 83}]`,
			"{.spec.ports[*].port}", "83"},
	} {
		e.kubectl("patch", "service/web", "--type="+tt.kind, "--patch="+tt.patch)
		during(tt.kind+" patch", func() { e.is("service/web", tt.path, tt.want) })
	}
	data := func(value string) string {
		return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"a": "` + value + `"}}`
	}
	e.feed(data("1"), "apply", "--server-side", "--field-manager=one", "-f", "-")
	refused("conflict", func() string {
		return e.feed(data("2"), "apply", "--server-side", "--field-manager=other", "-f", "-")
	})
	e.feed(data("2"), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
	e.is("configmap/data", "{.data.a}", "2")
}

// A custom resource is served with its schema's defaults and limits until its definition is deleted.
func customResource(e *env) {
	api := e.namespace + ".example.com"
	definition := "crd/things." + api
	e.cleanup(func() { e.kubectl("delete", definition, "--ignore-not-found", "--wait=false") })
	e.apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.$api}
spec:
  group: $api
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 10}
              color: {type: string, default: green}
          status:
            type: object
            properties: {phase: {type: string}}
`, "api", api)
	e.wait("condition=Established", definition)
	const thing = `{apiVersion: $api/v1, kind: Thing, metadata: {name: one}, spec: {size: $size}, status: {phase: none}}`
	e.until(func() { e.apply(thing, "api", api, "size", "3") }) // it is served a moment after it is established
	what := "things." + api
	e.is(what, "{.items[*].spec}", `{"color":"green","size":3}`)
	e.is(what, "{.items[*].status}", "") // only the subresource writes it
	refused("should be less than or equal to 10", func() string {
		return e.feed(e.expand(thing, "api", api, "size", "11"), "apply", "-f", "-")
	})
	e.kubectl("delete", definition)
	e.until(func() {
		e.refused("could not find the requested resource", "get", "--raw", "/apis/"+api+"/v1/things")
	})
}

// The API of an aggregated server is served like the API server's own.
func aggregation(e *env) {
	e.wait("condition=Available", "apiservice/v1beta1.metrics.k8s.io")
	text := e.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1")
	if !strings.Contains(text, `"NodeMetrics"`) {
		fail("metrics.k8s.io does not have NodeMetrics: %s", text)
	}
}

// An object written in one version of its API is read in another, and the other way round.
func conversion(e *env) {
	const old = `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old},
  spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, targetCPUUtilizationPercentage: 40}}`
	const now = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: now},
  spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1},
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`
	e.apply(old)
	e.apply(now)
	e.is("horizontalpodautoscalers.v2.autoscaling/old", "{.spec.metrics[0].resource.target.averageUtilization}", "40")
	e.is("horizontalpodautoscalers.v1.autoscaling/now", "{.spec.targetCPUUtilizationPercentage}", "50")
}
