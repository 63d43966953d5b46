package v1alpha1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"slipway.build/cmd/apis/fleet"
	"slipway.build/cmd/apis/fleet/v1alpha1"
	apply "slipway.build/cmd/generated/applyconfiguration/fleet/v1alpha1"
	"slipway.build/cmd/generated/clientset/versioned/fake"
	listers "slipway.build/cmd/generated/listers/fleet/v1alpha1"
	"slipway.build/cmd/generated/openapi"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fleet.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func rollout(clusters ...string) *v1alpha1.Rollout {
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "may", Namespace: "default"},
		Spec:       v1alpha1.RolloutSpec{Version: "v1.37.1", Clusters: clusters},
	}
}

func TestDefaultsAndConversion(t *testing.T) {
	s, in, out := scheme(t), rollout("a", "b"), &fleet.Rollout{}
	s.Default(in)
	if err := s.Convert(in, out, nil); err != nil {
		t.Fatal(err)
	}
	if out.Spec.MaxParallel == nil || *out.Spec.MaxParallel != 1 || len(out.Spec.Clusters) != 2 {
		t.Errorf("the internal object is %+v", out.Spec)
	}
}

func TestCopiesShareNothing(t *testing.T) {
	one := int32(1)
	in := rollout("a")
	in.Spec.MaxParallel = &one
	out := in.DeepCopy()
	*in.Spec.MaxParallel, in.Spec.Clusters[0] = 2, "b"
	if *out.Spec.MaxParallel != 1 || out.Spec.Clusters[0] != "a" {
		t.Errorf("the copy is %+v", out.Spec)
	}
}

func TestMarkersOfFieldsAreValidated(t *testing.T) {
	if errs := scheme(t).Validate(t.Context(), nil, &v1alpha1.Rollout{}); len(errs) == 0 {
		t.Error("an object without a version is valid")
	}
}

func TestClientsListersAndApplyConfigurations(t *testing.T) {
	client := fake.NewSimpleClientset(rollout())
	list, err := client.FleetV1alpha1().Rollouts("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("error %v, items %v", err, list)
	}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := index.Add(rollout()); err != nil {
		t.Fatal(err)
	}
	if found, err := listers.NewRolloutLister(index).Rollouts("default").List(labels.Everything()); err != nil || len(found) != 1 {
		t.Errorf("error %v, found %v", err, found)
	}
	data, err := json.Marshal(apply.Rollout("may", "default").WithSpec(apply.RolloutSpec().WithVersion("v1.37.1")))
	if want := `{"kind":"Rollout","apiVersion":"fleet.acme.example/v1alpha1","metadata":{"name":"may","namespace":"default"},"spec":{"version":"v1.37.1"}}`; err != nil || string(data) != want {
		t.Errorf("error %v, %s", err, data)
	}
}

func TestOpenAPIHasTheTypes(t *testing.T) {
	ref := func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) }
	var defs map[string]common.OpenAPIDefinition = openapi.GetOpenAPIDefinitions(ref)
	for _, d := range defs {
		if _, ok := d.Schema.Properties["maxParallel"]; ok {
			return
		}
	}
	t.Error("no definition has the property maxParallel")
}
