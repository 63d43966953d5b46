package target

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/stamp"
)

func TestImageTags(t *testing.T) {
	t.Parallel()
	own := []string{"registry.example.com/kubectl-arm64:v1.36.3_acme.1", "registry.example.com/kubectl:v1.36.3_acme.1"}
	tests := []struct {
		set  project.Settings
		more []string
	}{
		{project.Settings{}, nil},
		{project.Settings{DockerRegistry: "acme.example/k8s"},
			[]string{"acme.example/k8s/kubectl-arm64:v1.36.3_acme.1", "acme.example/k8s/kubectl:v1.36.3_acme.1"}},
		{project.Settings{DockerImageTag: "nightly"},
			[]string{"registry.example.com/kubectl-arm64:nightly", "registry.example.com/kubectl:nightly"}},
		{project.Settings{DockerRegistry: "acme.example", DockerImageTag: "nightly"},
			[]string{"acme.example/kubectl-arm64:nightly", "acme.example/kubectl:nightly"}},
	}
	for _, tt := range tests {
		t.Run(tt.set.DockerRegistry+" "+tt.set.DockerImageTag, func(t *testing.T) {
			t.Parallel()
			p := &project.Project{Settings: tt.set, Catalog: &catalog.Catalog{Registry: "registry.example.com"},
				Stamp: stamp.Stamp{Version: "v1.36.3+acme.1"}}
			want := append(slices.Clone(own), tt.more...)
			kubectl := catalog.Image{Name: "kubectl"}
			archive, index := archiveTags(p, kubectl, "arm64"), indexTags(p, kubectl)
			if diff := cmp.Diff(want, archive); diff != "" {
				t.Errorf("tags in the archive (-want +got):\n%s", diff)
			}
			ofAll := slices.DeleteFunc(want, func(tag string) bool { return strings.Contains(tag, "-arm64:") })
			if diff := cmp.Diff(ofAll, index); diff != "" {
				t.Errorf("tags of the index (-want +got):\n%s", diff)
			}
		})
	}
}
