package verify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodIsEditedAsData(t *testing.T) {
	t.Parallel()
	text := pod("web", "fill /args: 16", label("role: single"), metadata("namespace: there"),
		spec("nodeName: n"), container("resources: {limits: {memory: 64Mi}}"))
	var got map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "---\n")), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "namespace": "there", "labels": map[string]any{"app": "web", "role": "single"}},
		"spec": map[string]any{"nodeName": "n", "containers": []any{map[string]any{
			"name": "main", "image": "$image", "imagePullPolicy": "IfNotPresent", "args": []any{"fill", "/args:", "16"},
			"resources": map[string]any{"limits": map[string]any{"memory": "64Mi"}},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
