package verify

import (
	"encoding/json"
	"slices"
	"strings"
)

// What the API server does with requests and objects, from authentication to validation, and what it writes to etcd and the audit log.
var apiChecks = group("api", nil,
	Check{Name: "authentication", run: authentication},
	Check{Name: "authorization", run: authorization},
	Check{Name: "admission", run: admission},
	Check{Name: "validation", run: validation},
	Check{Name: "storage", run: storage},
	Check{Name: "conflict", run: conflict},
	Check{Name: "watch", run: watch},
	Check{Name: "resource-version", run: resourceVersion},
	Check{Name: "selectors", run: selectors},
	Check{Name: "patch", run: patch},
	Check{Name: "custom-resource", run: customResource},
	Check{Name: "aggregation", Needs: []string{kubelet, kubeProxy, metricsServer}, run: aggregation},
	Check{Name: "conversion", run: conversion},
	Check{Name: "open-api", run: openAPI},
	Check{Name: "apply-conflict", run: applyConflict},
	Check{Name: "bookmarks", run: bookmarks},
	Check{Name: "node-authorization", Needs: []string{kubelet}, run: nodeAuthorization},
	Check{Name: "admission-policy", run: admissionPolicy},
	Check{Name: "webhooks", run: webhooks},
	Check{Name: "audit", Needs: []string{kubelet}, run: audit},
	Check{Name: "encryption", Needs: []string{kubelet}, run: encryption},
	Check{Name: "fips", Skips: true, run: fips},
	Check{Name: "snapshot", Needs: []string{kubelet}, run: snapshot},
)

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

// An update of an object that has changed since it was read is refused, and the change stays.
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

// A list has the latest objects, those at a version, or those at a version or later. A version that is yet to come is refused.
func resourceVersion(e *env) {
	path := "/api/v1/namespaces/" + e.namespace + "/secrets"
	has := func(parameters, want string) (version string) {
		got := getJSON[struct {
			object
			Items []object
		}](e, path+parameters)
		var names []string
		for _, o := range got.Items {
			names = append(names, o.Metadata.Name)
		}
		if all := strings.Join(names, " "); all != want {
			fail("the list %s has %q, want %q", parameters, all, want)
		}
		return got.Metadata.ResourceVersion
	}
	e.kubectl("create", "secret", "generic", "one")
	before := has("", "one")
	e.kubectl("create", "secret", "generic", "two")
	after := has("", "one two")
	has("?resourceVersionMatch=Exact&resourceVersion="+before, "one")
	has("?resourceVersionMatch=NotOlderThan&resourceVersion="+after, "one two")
	e.until(func() { has("?resourceVersion=0", "one two") }) // any version will do, an old one, too
	e.refused("Too large resource version", "get", "--raw", path+"?resourceVersionMatch=NotOlderThan&resourceVersion=9"+after)
}

// Label selectors, by equality and by set, and field selectors by fields that have an index narrow lists.
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
		{"--field-selector=metadata.name!=two", "one three"},
		{"--field-selector=type=example.com/three", "three"},
		{"--field-selector=metadata.namespace=elsewhere", ""},
	} {
		if got := e.get("secrets", "{.items[*].metadata.name}", tt.flag); got != tt.want {
			fail("%s finds %q, want %q", tt.flag, got, tt.want)
		}
	}
	e.refused("field label not supported: data", "get", "secrets", "--field-selector=data=a")
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

// Two managers of the same field conflict when they apply different values, unless one forces its own.
func applyConflict(e *env) {
	apply := func(manager, color string, flags ...string) string {
		text := e.expand("{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {color: $color}}", "color", color)
		return e.feed(text, append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}, flags...)...)
	}
	apply("first", "green")
	during("the same value", func() { apply("second", "green") })
	refused(`conflict with "first"`, func() string { return apply("second", "blue") })
	e.is("configmap/shared", "{.data.color}", "green")
	apply("second", "blue", "--force-conflicts")
	e.is("configmap/shared", "{.data.color}", "blue")
	refused(`conflict with "second"`, func() string { return apply("first", "green") })
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

// The API describes itself in a document for each group, found through an index by address and digest, and kubectl explains it.
func openAPI(e *env) {
	type index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	at := getJSON[index](e, "/openapi/v3").Paths["apis/apps/v1"].ServerRelativeURL
	if !strings.Contains(at, "?hash=") {
		fail("the document of apps/v1 is at %q", at)
	}
	type document struct {
		OpenAPI    string
		Components struct{ Schemas map[string]json.RawMessage }
	}
	apps := getJSON[document](e, at)
	if !strings.HasPrefix(apps.OpenAPI, "3.") || apps.Components.Schemas["io.k8s.api.apps.v1.Deployment"] == nil {
		fail("the document of apps/v1, of OpenAPI %q, has no Deployment among %d schemas", apps.OpenAPI, len(apps.Components.Schemas))
	}
	said := e.kubectl("explain", "deployment.spec.replicas")
	if !strings.Contains(said, "FIELD: replicas <integer>") {
		fail("kubectl explain says %q", said)
	}
}

// A watch that asks for bookmarks gets them, and another watch can go on from one. A watch from a version that is too old is refused.
func bookmarks(e *env) {
	configMaps := e.watch("/api/v1", "configmaps")
	e.kubectl("create", "configmap", "before")
	var bookmark string
	e.until(func() { // the API server sends one two seconds before the end, if it has the time
		for _, c := range configMaps.read("allowWatchBookmarks=true&timeoutSeconds=6") {
			if c.Type == "BOOKMARK" {
				bookmark = c.Object.Metadata.ResourceVersion
			}
		}
		if bookmark == "" {
			fail("the watch has ended without a bookmark")
		}
	})
	e.kubectl("create", "configmap", "after")
	configMaps.version = bookmark
	if changes := configMaps.changes(); len(changes) != 1 || changes[0].Object.Metadata.Name != "after" {
		fail("after the bookmark there were %d changes, want one", len(changes))
	}
	e.expires()
}

// expires requires that a watch from a version before the resource existed is refused, and that one from the version of a list is not.
func (e *env) expires() {
	definition := "crd/things." + e.namespace + ".example.com"
	e.cleanup(func() { e.kubectl("delete", definition, "--ignore-not-found", "--wait=false") })
	e.apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.$namespace.example.com}
spec:
  group: $namespace.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	e.wait("condition=Established", definition)
	var things watcher
	e.until(func() { things = e.watch("/apis/"+e.namespace+".example.com/v1", "things") }) // it is served a moment later
	old := things
	old.version = "1"
	said := ""
	if err := attempt(func() { said = old.text("timeoutSeconds=1") }); err != nil {
		said = err.Error()
	}
	if !strings.Contains(said, `"code":410`) && !strings.Contains(said, "too old resource version") {
		fail("a watch from version 1 of a new resource is not refused as too old: %q", said)
	}
	things.changes()
}
