package local

import (
	"slices"
	"testing"

	"slipway.build/pkg/catalog"
	"slipway.build/pkg/road"
	"slipway.build/pkg/toolchain"
)

func TestNameThatTheGoToolGivesATarget(t *testing.T) {
	t.Parallel()
	tests := []struct {
		target road.Target
		os     string
		want   string
	}{
		{road.Target{Package: "./kubectl"}, "linux", "kubectl"},
		{road.Target{Package: "./kubectl"}, "windows", "kubectl.exe"},
		{road.Target{Package: "github.com/onsi/ginkgo/v2/ginkgo"}, "linux", "ginkgo"},
		{road.Target{Package: "example.com/tool/v2"}, "linux", "tool"},
		{road.Target{Package: "gopkg.in/tool.v2"}, "linux", "tool.v2"},
		{road.Target{Package: "k8s.io/kubernetes/test/e2e", Test: true}, "linux", "e2e.test"},
		{road.Target{Package: "k8s.io/kubernetes/test/e2e", Test: true}, "windows", "e2e.test.exe"},
	}
	for _, tt := range tests {
		r := &run{c: road.Compilation{Platform: catalog.Platform{OS: tt.os, Arch: "amd64"}}}
		if got := r.file(tt.target); got != tt.want {
			t.Errorf("%s on %s is %s, want %s", tt.target.Package, tt.os, got, tt.want)
		}
	}
}

func TestRecipeNamesThePathOfTheTreeInDebugBuildsOnly(t *testing.T) {
	t.Parallel()
	r := &Road{Pin: toolchain.Pin{Version: "go1.26.8"}}
	c := road.Compilation{Root: "/src/tree", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}}
	if slices.Contains(r.Recipe(c), "/src/tree") {
		t.Errorf("recipe %q", r.Recipe(c))
	}
	c.Options.Debug = true
	if !slices.Contains(r.Recipe(c), "/src/tree") {
		t.Errorf("recipe %q of a debug build, in whose bytes the path is", r.Recipe(c))
	}
}
