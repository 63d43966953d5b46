// Package field is a test of a field that a patch adds to the hand-written types of Deployments.
package field

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/apis/apps"
	conversion "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

func TestProtobufKeepsTheField(t *testing.T) {
	night := "night"
	in := &appsv1.DeploymentSpec{ChangeWindow: &night}
	data, err := in.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := &appsv1.DeploymentSpec{}
	if err := out.Unmarshal(data); err != nil || out.ChangeWindow == nil || *out.ChangeWindow != night {
		t.Errorf("error %v, decoded %v", err, out.ChangeWindow)
	}
}

func TestCopiesShareNothing(t *testing.T) {
	night := "night"
	in := &appsv1.DeploymentSpec{ChangeWindow: &night}
	out := in.DeepCopy()
	night = "day"
	if *out.ChangeWindow != "night" {
		t.Error("the copy has changed with the original")
	}
}

func TestConversionKeepsTheField(t *testing.T) {
	s := runtime.NewScheme()
	if err := conversion.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := apps.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	night, out := "night", &apps.Deployment{}
	if err := s.Convert(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{ChangeWindow: &night}}, out, nil); err != nil {
		t.Fatal(err)
	}
	if out.Spec.ChangeWindow == nil || *out.Spec.ChangeWindow != night {
		t.Errorf("the internal object has %v", out.Spec.ChangeWindow)
	}
}

func TestOpenAPIAndApplyConfigurationsNameTheField(t *testing.T) {
	_ = apply.DeploymentSpec().WithChangeWindow("night")
	defs := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	if _, ok := defs[appsv1.DeploymentSpec{}.OpenAPIModelName()].Schema.Properties["changeWindow"]; !ok {
		t.Error("the definition of DeploymentSpec has no changeWindow")
	}
	if doc := (appsv1.DeploymentSpec{}).SwaggerDoc()["changeWindow"]; doc != "changeWindow is when pods may be replaced." {
		t.Errorf("kubectl explain would say %q", doc)
	}
}
