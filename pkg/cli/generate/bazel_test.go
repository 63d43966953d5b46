package generate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/tree/module"
)

func TestBazelGetsPatchedModules(t *testing.T) {
	t.Parallel()
	modules := []goModule{
		{path: "k8s.io/api", version: "v0.37.1", sum: "h1:a="},
		{path: "k8s.io/kubernetes", version: "v1.37.1", sum: "h1:k=", required: "v1.37.1"},
		{path: "example.com/old", replace: "example.com/fork", version: "v1.0.0", sum: "h1:f="},
	}
	takePatched(modules, &patched.List{Modules: []patched.Module{
		{Path: "k8s.io/kubernetes", Patched: module.Version{Path: "k8s.io/kubernetes", Version: "v1.37.1-patched.p1"}, Sum: "h1:p="},
		{Path: "example.com/old", Patched: module.Version{Path: "example.com/fork", Version: "v1.0.0-patched.p1"}, Sum: "h1:q="},
		{Path: "example.com/unused", Patched: module.Version{Path: "example.com/unused", Version: "v1.0.0-patched.p1"}, Sum: "h1:u="},
	}})
	want := []goModule{
		{path: "k8s.io/api", version: "v0.37.1", sum: "h1:a="},
		{path: "k8s.io/kubernetes", version: "v1.37.1-patched.p1", sum: "h1:p=", required: "v1.37.1",
			replaced: "k8s.io/kubernetes@v1.37.1-patched.p1"},
		{path: "example.com/old", replace: "example.com/fork", version: "v1.0.0-patched.p1", sum: "h1:q=",
			replaced: "example.com/fork@v1.0.0-patched.p1"},
	}
	if diff := cmp.Diff(want, modules, cmp.AllowUnexported(goModule{})); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
}
