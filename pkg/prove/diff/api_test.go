package diff_test

import (
	"strings"
	"testing"

	"slipway.build/pkg/prove/diff"
)

func TestChangesOfTheAPIAreNamed(t *testing.T) {
	t.Parallel()
	const name = "kubernetes/api/openapi-spec/swagger.json"
	api := func(text string) string { return release(t, pack(t, 6, content{name, 0o644, []byte(text)})) }
	a := api(`{
  "paths": {"/api/v1/pods": {"get": {}}, "/apis/apps/v1/gones": {"get": {}, "post": {}}, "/version": {"get": {}}},
  "definitions": {
    "io.k8s.api.core.v1.Pod": {
      "properties": {
        "name": {"type": "string"}, "spec": {"$ref": "#/definitions/Spec"}, "list": {"type": "array", "items": {"type": "string"}}
      },
      "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}]
    },
    "io.k8s.api.apps.v1.Gone": {"x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Gone", "version": "v1"}]}
  }}`)
	b := api(`{
  "paths": {"/api/v1/pods": {"get": {}, "put": {}}, "/version": {"get": {"description": "other"}}, "/new": {"get": {}}},
  "definitions": {
    "io.k8s.api.core.v1.Pod": {
      "required": ["name"],
      "properties": {"name": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer", "format": "int32"}}, "new": {}},
      "x-kubernetes-group-version-kind": [{"group": "", "kind": "Pod", "version": "v1"}]
    }
  }}`)
	verdict, text := compare(t, a, b)
	const want = `           paths: 3 differ
             /api/v1/pods: get and get put
             /apis/apps/v1/gones only in A
             /new only in B
           kinds: 1 differ
             apps/v1 Gone only in A
           fields: 4 differ
             io.k8s.api.core.v1.Pod.list: list of string and list of integer int32
             io.k8s.api.core.v1.Pod.name: string and string, required
             io.k8s.api.core.v1.Pod.new only in B
             io.k8s.api.core.v1.Pod.spec only in A
`
	if verdict != diff.Different || !strings.Contains(text, want) {
		t.Errorf("%s:\n%s", verdict, text)
	}
	_, text = compare(t, api(`{"info": {"title": "a"}}`), api(`{"info": {"title": "b"}}`))
	if !strings.Contains(text, "descriptions, parameters") {
		t.Errorf("other titles:\n%s", text)
	}
}
