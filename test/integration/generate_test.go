//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/patched"
)

// faithful is the last line of a comparison without a difference.
var faithful = regexp.MustCompile(`(?m)^0 of [1-9][0-9]* generated files differ from upstream's\n\z`)

func TestGeneratorsMakeUpstreamsFiles(t *testing.T) {
	r := baseline(t)
	groups := []string{"register", "prerelease"}
	if soak {
		groups = nil
	}
	out := r.slipway(t, append([]string{"generate", "--compare"}, groups...)...).ok(t).stdout
	if !faithful.MatchString(out) {
		t.Errorf("the comparison ends in %s", tail(out))
	}
}

// The worked example has tests that use everything that is generated for it.
func TestAPIGroupOfADistribution(t *testing.T) {
	rare(t, "it compiles the generators' output, and TestGeneratorsMakeUpstreamsFiles runs the same generators")
	containerLane.join(t)
	tr := clone(t)
	copyFolder(t, filepath.Join("testdata", "api"), tr.path("cmd"))
	const code = "cmd/apis/fleet/zz_generated.deepcopy.go"
	stale := tr.slipway(t, "generate", "--check").fails(t, 1)
	for _, want := range []string{code + ": missing\n", "cmd/generated/clientset/versioned/clientset.go: missing\n"} {
		if !strings.Contains(stale.stdout, want) {
			t.Errorf("--check does not list %q: %s", want, stale)
		}
	}
	if tr.exists(code) {
		t.Error("--check has written to the tree")
	}
	tr.slipway(t, "generate").ok(t)
	env := append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath -buildvcs=false", "CGO_ENABLED=0", "GOWORK=off")
	run(t, tr.path("cmd"), env, "go", "test", "./apis/...").ok(t)
	if again := tr.slipway(t, "generate", "--check").ok(t); strings.Contains(again.stdout, "cmd/") {
		t.Errorf("a second time: %s", again)
	}

	// Code that does not compile leaves everything as it was.
	before := tr.read(t, code)
	types := tr.read(t, "cmd/apis/fleet/types.go")
	tr.write(t, "cmd/apis/fleet/types.go", strings.Replace(types, "type RolloutSpec struct {", "type RolloutSpec struct {{", 1))
	tr.slipway(t, "generate").fails(t, 1, "cmd/apis/fleet/types.go:")
	if tr.read(t, code) != before {
		t.Errorf("%s has changed", code)
	}
	tr.write(t, "cmd/apis/fleet/types.go", types)
	tr.slipway(t, "generate", "--check").ok(t)
}

// A patch that adds a field to types, as people write it, is enough for every API to have it.
func TestFieldOfAPatchIsInEveryAPI(t *testing.T) {
	rare(t, "runs most generators of Kubernetes, and compiles its OpenAPI definitions twice")
	tr := clone(t)
	if err := os.MkdirAll(tr.path("patches"), 0o755); err != nil {
		t.Fatal(err)
	}
	patch, err := os.ReadFile(filepath.Join("testdata", "generated", "change-window.patch"))
	if err != nil {
		t.Fatal(err)
	}
	tr.write(t, "patches/0001-change-window.patch", string(patch))
	tr.slipway(t, "generate").ok(t)
	made := tr.path(patched.Dir("cmd"))
	list, err := patched.ReadList(made)
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for _, m := range list.Modules {
		modules = append(modules, m.Path)
	}
	// Code of no other module depends on the field.
	if diff := cmp.Diff([]string{"k8s.io/api", "k8s.io/client-go", "k8s.io/kubernetes"}, modules); diff != "" {
		t.Errorf("patched modules (-want +got):\n%s", diff)
	}
	copyFolder(t, filepath.Join("testdata", "generated"), tr.path("cmd/field"))
	env := append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -buildvcs=false -modfile="+made+"/go.mod", "CGO_ENABLED=0", "GOWORK=off",
		"GOPROXY=file://"+made+"/proxy,"+goEnv(t, "GOPROXY"))
	run(t, tr.path("cmd"), env, "go", "test", "./field").ok(t)
}

// copyFolder copies the files below a folder into another, which may exist.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
