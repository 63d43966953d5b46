package cluster

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestContainersOfImagesThatMovedAreSuperseded(t *testing.T) {
	t.Parallel()
	var list struct{ Containers []nodeContainer }
	// As crictl ps --output=json prints it.
	err := json.Unmarshal([]byte(`{"containers": [
		{"id": "dns", "image": {"image": "sha256:1", "userSpecifiedImage": "r/coredns:v1"}},
		{"id": "same", "image": {"image": "sha256:3", "userSpecifiedImage": "r/etcd:v3"}},
		{"id": "old", "image": {"image": "r/coredns:v1"}},
		{"id": "other", "image": {"image": "sha256:4", "userSpecifiedImage": "example.com/web:1"}}
	]}`), &list)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{"r/coredns:v1": "sha256:1", "r/etcd:v3": "sha256:3", "example.com/web:1": "sha256:4"}
	after := map[string]string{"r/coredns:v1": "sha256:2", "r/etcd:v3": "sha256:3", "example.com/web:1": "sha256:4",
		"r/kube-proxy:v2": "sha256:5"}
	if got := superseded(list.Containers, before, after); !slices.Equal(got, []string{"dns", "old"}) {
		t.Errorf("superseded are %q", got)
	}
	if got := superseded(list.Containers, after, after); got != nil {
		t.Errorf("%q are superseded by nothing", got)
	}
}
