package verify

import (
	"context"
	"encoding/json"
	"fmt"
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
func (e *env) as(ctx context.Context, token string, args ...string) (string, error) {
	found, err := e.kubectl(ctx, "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster}")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{map[string]any{"name": "it", "cluster": json.RawMessage(found)}},
		"users":    []any{map[string]any{"name": "it", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
	})
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "slipway-verify-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", err
	}
	return e.kubectlAs(ctx, file, "", args...)
}

// token returns a token of the namespace's service account.
func (e *env) token(ctx context.Context) (string, error) {
	token, err := e.kubectl(ctx, "create", "token", "default")
	return strings.TrimSpace(token), err
}

// A service account's token authenticates it, and a token with one letter changed does not.
func authentication(ctx context.Context, e *env) error {
	token, err := e.token(ctx)
	if err != nil {
		return err
	}
	who, err := e.as(ctx, token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil {
		return err
	}
	if want := "system:serviceaccount:" + e.namespace + ":default"; who != want {
		return fmt.Errorf("the token belongs to %q, want %q", who, want)
	}
	return isRefused("must be logged in")(e.as(ctx, flip(token), "get", "configmaps"))
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
func authorization(ctx context.Context, e *env) error {
	token, err := e.token(ctx)
	if err != nil {
		return err
	}
	if err := isRefused("is forbidden")(e.as(ctx, token, "get", "configmaps")); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "create", "rolebinding", "viewer", "--clusterrole=view",
		"--serviceaccount="+e.namespace+":default"); err != nil {
		return err
	}
	err = until(ctx, func() error {
		_, err := e.as(ctx, token, "get", "configmaps")
		return err
	})
	if err != nil {
		return err
	}
	return isRefused("is forbidden")(e.as(ctx, token, "get", "secrets"))
}

// A LimitRange sets the limit of containers that have none, and refuses higher ones.
func admission(ctx context.Context, e *env) error {
	err := e.apply(ctx, `
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {memory: 32Mi}, max: {memory: 64Mi}}
`)
	if err != nil {
		return err
	}
	err = until(ctx, func() error {
		got, err := e.feed(ctx, e.expand(pod("web", "wait")), "create", "--dry-run=server", "-f", "-", "-o",
			"jsonpath={.spec.containers[0].resources.limits.memory}")
		if err == nil && got != "32Mi" {
			err = fmt.Errorf("the container's limit is %q, want the LimitRange's 32Mi", got)
		}
		return err
	})
	if err != nil {
		return err
	}
	large := pod("web", "wait", container("resources: {limits: {memory: 65Mi}}"))
	return e.refused(ctx, "maximum memory usage per Container is 64Mi", e.expand(large), "create", "--dry-run=server", "-f", "-")
}

// A value out of range and a field that does not exist are refused.
func validation(ctx context.Context, e *env) error {
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {port: $port}
  $more
`
	if err := e.refused(ctx, "Invalid value: 70000", e.expand(service, "port", "70000", "more", ""), "create", "--validate=false",
		"-f", "-"); err != nil {
		return err
	}
	if err := e.refused(ctx, `unknown field "spec.prots"`, e.expand(service, "port", "80", "more", "prots: []"), "create", "--validate=strict",
		"-f", "-"); err != nil {
		return err
	}
	return e.apply(ctx, service, "port", "80", "more", "")
}

// An object is read back as it was stored, as it was updated, and not after it was deleted.
func storage(ctx context.Context, e *env) error {
	for _, text := range []string{"Grüße, 世界\nand a second line", strings.Repeat("0123456789abcdef", 1<<14)} { // short, and 256 KiB
		quoted, err := json.Marshal(text)
		if err != nil {
			return err
		}
		// Not by apply, which would keep a second copy in an annotation of limited size.
		manifest := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"text": ` + string(quoted) + `}}`
		command := "create"
		if strings.HasPrefix(text, "0") {
			command = "replace"
		}
		if _, err := e.feed(ctx, manifest, command, "-f", "-"); err != nil {
			return err
		}
		got, err := e.kubectl(ctx, "get", "configmap/data", "-o", "jsonpath={.data.text}")
		if err != nil {
			return err
		}
		if got != text {
			return fmt.Errorf("%d bytes were stored, and %d different ones read back", len(text), len(got))
		}
	}
	if _, err := e.kubectl(ctx, "delete", "configmap/data"); err != nil {
		return err
	}
	return e.refused(ctx, "NotFound", "", "get", "configmap/data")
}

// An update of an object that has changed in between is refused, and the other change stays.
func conflict(ctx context.Context, e *env) error {
	if _, err := e.kubectl(ctx, "create", "configmap", "data", "--from-literal=by=nobody"); err != nil {
		return err
	}
	read, err := e.kubectl(ctx, "get", "configmap/data", "-o", "json")
	if err != nil {
		return err
	}
	by := func(who string) string {
		m := parse(read) // with its resource version
		m["data"] = manifest{"by": who}
		return document(m)
	}
	if _, err := e.feed(ctx, by("one"), "replace", "-f", "-"); err != nil {
		return err
	}
	if err := e.refused(ctx, "the object has been modified", by("other"), "replace", "-f", "-"); err != nil {
		return err
	}
	return e.is(ctx, "configmap/data", "{.data.by}", "one")
}

// A watch from a resource version reports all later changes in order, and no earlier one.
func watch(ctx context.Context, e *env) error {
	path := "/api/v1/namespaces/" + e.namespace + "/configmaps"
	if _, err := e.kubectl(ctx, "create", "configmap", "before"); err != nil {
		return err
	}
	version, err := e.version(ctx, path)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", "configmap", "data"}, {"label", "configmap", "data", "a=b"}, {"create", "configmap", "more"}, {"delete", "configmap", "data"},
	} {
		if _, err := e.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return until(ctx, func() error {
		changes, err := e.since(ctx, path, version)
		if err != nil {
			return err
		}
		var got []string
		for _, c := range changes {
			got = append(got, c.Type+" "+c.Object.Metadata.Name)
		}
		if want := []string{"ADDED data", "MODIFIED data", "ADDED more", "DELETED data"}; !slices.Equal(got, want) {
			return fmt.Errorf("the watch reports %q, want %q", got, want)
		}
		return nil
	})
}

// Label selectors, by equality and by set, and field selectors narrow lists.
func selectors(ctx context.Context, e *env) error {
	for name, labels := range map[string]string{"one": "tier=front", "two": "tier=back", "three": "tier=back,old=very"} {
		err := e.apply(ctx, `{apiVersion: v1, kind: Secret, type: $type, metadata: {name: $name, labels: {$labels}}}`,
			"name", name, "type", "example.com/"+name, "labels", strings.ReplaceAll(labels, "=", ": "))
		if err != nil {
			return err
		}
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
		got, err := e.get(ctx, "secrets", "{.items[*].metadata.name}", tt.flag)
		if err != nil {
			return err
		}
		if got != tt.want {
			return fmt.Errorf("%s finds %q, want %q", tt.flag, got, tt.want)
		}
	}
	return nil
}

// Each kind of patch does what it says, and server-side apply keeps another manager's fields unless forced.
func patch(ctx context.Context, e *env) error {
	err := e.apply(ctx, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {name: a, port: 80}
`)
	if err != nil {
		return err
	}
	for _, tt := range []struct{ kind, patch, path, want string }{
		{"strategic", `{"spec": {"ports": [{"name": "b", "port": 81}]}}`, "{.spec.ports[*].port}", "81 80"},
		{"merge", `{"spec": {"ports": [{"name": "c", "port": 82}]}}`, "{.spec.ports[*].port}", "82"},
		{"json", `[{"op": "test", "path": "/spec/ports/0/port", "value": 82}, {"op": "replace", "path": "/spec/ports/0/port", "value": 83}]`,
			"{.spec.ports[*].port}", "83"},
	} {
		if _, err := e.kubectl(ctx, "patch", "service/web", "--type="+tt.kind, "--patch="+tt.patch); err != nil {
			return err
		}
		if err := e.is(ctx, "service/web", tt.path, tt.want); err != nil {
			return fmt.Errorf("%s patch: %w", tt.kind, err)
		}
	}
	data := func(value string) string {
		return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "data"}, "data": {"a": "` + value + `"}}`
	}
	if _, err := e.feed(ctx, data("1"), "apply", "--server-side", "--field-manager=one", "-f", "-"); err != nil {
		return err
	}
	if err := e.refused(ctx, "conflict", data("2"), "apply", "--server-side", "--field-manager=other", "-f", "-"); err != nil {
		return err
	}
	if _, err := e.feed(ctx, data("2"), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"); err != nil {
		return err
	}
	return e.is(ctx, "configmap/data", "{.data.a}", "2")
}

// A custom resource is served with its schema's defaults and limits until its definition is deleted.
func customResource(ctx context.Context, e *env) error {
	api := e.namespace + ".example.com"
	definition := "crd/things." + api
	e.cleanup(func(ctx context.Context) error {
		_, err := e.kubectl(ctx, "delete", definition, "--ignore-not-found", "--wait=false")
		return err
	})
	err := e.apply(ctx, `
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
	if err != nil {
		return err
	}
	if err := e.wait(ctx, "condition=Established", definition); err != nil {
		return err
	}
	const thing = `{apiVersion: $api/v1, kind: Thing, metadata: {name: one}, spec: {size: $size}, status: {phase: none}}`
	err = until(ctx, func() error { return e.apply(ctx, thing, "api", api, "size", "3") }) // it is served a moment after it is established
	if err != nil {
		return err
	}
	what := "things." + api
	if err := e.is(ctx, what, "{.items[*].spec}", `{"color":"green","size":3}`); err != nil {
		return err
	}
	if err := e.is(ctx, what, "{.items[*].status}", ""); err != nil { // only the subresource writes it
		return err
	}
	if err := e.refused(ctx, "should be less than or equal to 10", e.expand(thing, "api", api, "size", "11"), "apply", "-f", "-"); err != nil {
		return err
	}
	if _, err := e.kubectl(ctx, "delete", definition); err != nil {
		return err
	}
	return until(ctx, func() error {
		return e.refused(ctx, "could not find the requested resource", "", "get", "--raw", "/apis/"+api+"/v1/things")
	})
}

// The API of an aggregated server is served like the API server's own.
func aggregation(ctx context.Context, e *env) error {
	if err := e.wait(ctx, "condition=Available", "apiservice/v1beta1.metrics.k8s.io"); err != nil {
		return err
	}
	text, err := e.kubectl(ctx, "get", "--raw", "/apis/metrics.k8s.io/v1beta1")
	if err != nil {
		return err
	}
	if !strings.Contains(text, `"NodeMetrics"`) {
		return fmt.Errorf("metrics.k8s.io does not have NodeMetrics: %s", text)
	}
	return nil
}

// An object written in one version of its API is read in another, and the other way round.
func conversion(ctx context.Context, e *env) error {
	const old = `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old},
  spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1}, targetCPUUtilizationPercentage: 40}}`
	const now = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: now},
  spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web, apiVersion: apps/v1},
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`
	for _, manifest := range []string{old, now} {
		if err := e.apply(ctx, manifest); err != nil {
			return err
		}
	}
	if err := e.is(ctx, "horizontalpodautoscalers.v2.autoscaling/old",
		"{.spec.metrics[0].resource.target.averageUtilization}", "40"); err != nil {
		return err
	}
	return e.is(ctx, "horizontalpodautoscalers.v1.autoscaling/now", "{.spec.targetCPUUtilizationPercentage}", "50")
}
