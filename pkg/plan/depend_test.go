package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/action"
	"slipway.build/pkg/catalog"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	module := []string{
		"cmd/go.mod", "cmd/go.sum",
		"fake/kubernetes/LICENSE", "fake/kubernetes/go.mod", "fake/kubernetes/pkg/", "fake/kubernetes/test/", // it is replaced
	}
	bin := "_output/local/bin/linux/arm64/"
	tests := []struct {
		action string
		want   []string
	}{
		{"compile linux/arm64 kubelet", append([]string{"cmd/kubelet/"}, module...)},
		{"compile linux/arm64 kube-apiserver", append([]string{"cmd/internal/letters/", "cmd/internal/words/", "cmd/kube-apiserver/"}, module...)},
		{"compile linux/arm64 smoke.test", append([]string{"cmd/smoke/"}, module...)},
		{"compile linux/arm64 e2e.test", module},
		{"image linux/arm64 kube-apiserver", []string{bin + "kube-apiserver", bin + "kube-log-runner", "_output/release-stage/sources/images/static/"}},
		{"licences linux/arm64 components", append([]string{
			"_output/release-stage/sources/LICENSE", "_output/release-stage/packages/components/linux-arm64.json",
			bin + "kube-apiserver", bin + "kube-log-runner", bin + "kubectl", bin + "kubelet",
		}, module...)},
		{"package kubernetes-client-linux-arm64.tar.gz", []string{bin + "kubectl"}},
		{"package kubernetes-node-linux-arm64.tar.gz", []string{
			bin + "kubelet", bin + "kube-log-runner", bin + "kubectl",
			"_output/release-stage/licences/components/linux-arm64/", "_output/release-tars/kubernetes-src.tar.gz",
		}},
		{"package kubernetes-server-linux-arm64.tar.gz", []string{
			bin + "kube-apiserver", bin + "kubelet", bin + "kube-log-runner", bin + "kubectl",
			"_output/release-images/arm64/kube-apiserver.tar", "_output/release-images/arm64/kube-apiserver.docker_tag",
			"_output/release-stage/licences/components/linux-arm64/", "_output/release-tars/kubernetes-src.tar.gz",
			"_output/release-stage/sources/release/manifests/addons/",
		}},
		{"package kubernetes-manifests.tar.gz", []string{"_output/release-stage/sources/release/manifests/"}},
		{"package kubernetes.tar.gz", []string{"_output/release-stage/sources/README.md", "_output/release-stage/sources/LICENSE", "_output/release-stage/sources/docs/"}},
	}
	g := graph(t, open(t, tree(t)), Request{Tars: true, TestSet: true, Platforms: []catalog.Platform{linuxARM64}})
	for _, tt := range tests {
		t.Run(tt.action, func(t *testing.T) {
			t.Parallel()
			got := slices.Clone(find(t, g, tt.action).Inputs)
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecksumsAreOfEveryTarball(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{Tars: true, TestSet: true, Everywhere: true})
	inputs := find(t, g, "checksums").Inputs
	for _, a := range g.Actions {
		for _, out := range a.Outputs {
			if strings.HasSuffix(out, ".tar.gz") && a.Phase == "package" && !slices.Contains(inputs, out) {
				t.Errorf("%s is not summed", out)
			}
		}
	}
}

func TestComponentsOfAPlatformAreCompiledInOneGo(t *testing.T) {
	t.Parallel()
	g := graph(t, open(t, tree(t)), Request{Tars: true, Everywhere: true})
	batches := map[string]*action.Batch{}
	for _, a := range g.Actions {
		if a.Phase != "compile" {
			continue
		}
		platform := strings.Fields(a.ID)[1]
		if a.Batch == nil || batches[platform] != nil && batches[platform] != a.Batch {
			t.Errorf("%s is not in its platform's batch", a.ID)
		}
		batches[platform] = a.Batch
	}
	if len(batches) != 4 {
		t.Errorf("compiles for %d platforms, want 4", len(batches))
	}
}

// recipes are those of all actions, by ID.
func recipes(g *action.Graph) map[string][]string {
	all := map[string][]string{}
	for _, a := range g.Actions {
		all[a.ID] = a.Recipe
	}
	return all
}

func TestWhatASettingRebuilds(t *testing.T) {
	t.Parallel()
	every := []string{"checksums", "compile", "image", "licences", "package", "packages"}
	tests := []struct {
		variable string
		want     []string // first words of the actions' names
	}{
		{"KUBE_GIT_VERSION=v1.36.3+acme.2", []string{"compile", "image", "package (some)"}}, // a client tarball says nothing
		{"SOURCE_DATE_EPOCH=1700000000", []string{"compile", "image", "package"}},
		{"DBG=1", []string{"compile", "packages"}},
		{"GOFLAGS=-tags=acme", []string{"compile", "packages"}},
		{"GOLDFLAGS=-w", []string{"compile"}},
		{"KUBE_DOCKER_REGISTRY=registry.acme.example", []string{"image"}},
		{"KUBE_DOCKER_IMAGE_TAG=nightly", []string{"image"}},
		{"KUBE_VERBOSE=2", nil},
	}
	root := tree(t)
	req := Request{Tars: true, TestSet: true, Everywhere: true}
	before := recipes(graph(t, open(t, root), req))
	for _, tt := range tests {
		t.Run(tt.variable, func(t *testing.T) {
			t.Parallel()
			after := recipes(graph(t, open(t, root, tt.variable), req))
			var got []string
			for _, kind := range every {
				same, changed := 0, 0
				for id, recipe := range after {
					switch {
					case strings.Fields(id)[0] != kind:
					case slices.Equal(recipe, before[id]):
						same++
					default:
						changed++
					}
				}
				switch {
				case changed > 0 && same > 0:
					got = append(got, kind+" (some)")
				case changed > 0:
					got = append(got, kind)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changed recipes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecipesHoldNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	req := Request{Tars: true, TestSet: true, Everywhere: true}
	one, other := recipes(graph(t, open(t, tree(t)), req)), recipes(graph(t, open(t, tree(t)), req))
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("two trees of the same sources have different recipes:\n%s", diff)
	}
}

func TestImageTags(t *testing.T) {
	t.Parallel()
	own := []string{"registry.example.com/kubectl-arm64:v1.36.3_acme.1", "registry.example.com/kubectl:v1.36.3_acme.1"}
	tests := []struct {
		env  []string
		more []string
	}{
		{nil, nil},
		{[]string{"KUBE_DOCKER_REGISTRY=acme.example/k8s"},
			[]string{"acme.example/k8s/kubectl-arm64:v1.36.3_acme.1", "acme.example/k8s/kubectl:v1.36.3_acme.1"}},
		{[]string{"KUBE_DOCKER_IMAGE_TAG=nightly"},
			[]string{"registry.example.com/kubectl-arm64:nightly", "registry.example.com/kubectl:nightly"}},
		{[]string{"KUBE_DOCKER_REGISTRY=acme.example", "KUBE_DOCKER_IMAGE_TAG=nightly"},
			[]string{"acme.example/kubectl-arm64:nightly", "acme.example/kubectl:nightly"}},
	}
	root := tree(t)
	for _, tt := range tests {
		t.Run(strings.Join(tt.env, " "), func(t *testing.T) {
			t.Parallel()
			b := &builder{Project: open(t, root, tt.env...)}
			want := append(slices.Clone(own), tt.more...)
			if diff := cmp.Diff(want, b.imageTags("kubectl", "arm64")); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
		})
	}
}
