//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gomod "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/tree/module"
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
	// So does a build, which compiles what is there.
	if built := tr.slipway(t, "build", "kube-log-runner").ok(t); !strings.Contains(built.stderr, "\n  "+code+": missing\n") {
		t.Errorf("a build does not say that %s is missing: %s", code, built)
	}
	if tr.exists(code) {
		t.Error("--check or a build has written to the tree")
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

// A patch that adds a field to types, as people write it, is enough for every API to have it, in programs outside of the tree, too.
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
	list, err := patched.ReadList(tr.path(patched.Dir("cmd")))
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
	testPublished(t, tr, filepath.Join("testdata", "generated"))
}

// testPublished publishes a tree's modules, and runs tests that are outside of the tree with them. Another module that they need wants
// upstream's version.
func testPublished(t *testing.T, tr tree, tests string) {
	t.Helper()
	upstream := strings.TrimSpace(run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").ok(t).stdout)
	proxy, program := t.TempDir(), tree{dir: t.TempDir()}
	tr.with("KUBE_GIT_VERSION="+upstream+"+acme.1").slipway(t, "source", "--modules", proxy).ok(t)
	found, err := filepath.Glob(filepath.Join(proxy, "*.sum"))
	if err != nil || len(found) != 1 {
		t.Fatalf("files of sums: %q, %v", found, err)
	}
	modules, err := module.ReadSums(found[0])
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range modules {
		versions[m.Path] = m.Version.Version
	}
	writeLibrary(t, proxy, strings.Replace(upstream, "v1.", "v0.", 1))
	copyFolder(t, tests, program.dir)
	program.write(t, "go.mod", fmt.Sprintf("module example.com/program\n\ngo 1.26.0\n\nrequire (\n\texample.com/lib v1.0.0\n"+
		"\tk8s.io/api %s\n\tk8s.io/kubernetes %s\n)\n", versions["k8s.io/api"], versions["k8s.io/kubernetes"]))
	program.write(t, "lib.go", "package field\n\nimport _ \"example.com/lib\"\n")
	program.write(t, "go.sum", run(t, tr.dir, nil, "cat", found[0], "cmd/go.sum").ok(t).stdout)
	// The user's module cache would keep these versions, and refuse other ones of the next run.
	env := append(os.Environ(), "GOFLAGS=-mod=mod -modcacherw -trimpath -buildvcs=false", "CGO_ENABLED=0", "GOWORK=off", "GOSUMDB=off",
		"GOTOOLCHAIN=local", "GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+proxy+",file://"+goEnv(t, "GOMODCACHE")+"/cache/download,"+goEnv(t, "GOPROXY"))
	run(t, program.dir, env, "go", "test", ".").ok(t)
	selected := run(t, program.dir, env, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/api", "k8s.io/client-go").ok(t).stdout
	if want := strings.Repeat(versions["k8s.io/api"]+"\n", 2); selected != want {
		t.Errorf("Go selects %q, want %q", selected, want)
	}
}

// writeLibrary writes a module to a proxy's folder that requires a version of k8s.io/api.
func writeLibrary(t *testing.T, proxy, api string) {
	t.Helper()
	lib, to := tree{dir: t.TempDir()}, tree{dir: filepath.Join(proxy, "example.com", "lib", "@v")}
	goMod := "module example.com/lib\n\ngo 1.26.0\n\nrequire k8s.io/api " + api + "\n"
	lib.write(t, "go.mod", goMod)
	lib.write(t, "lib.go", "package lib\n\nimport _ \"k8s.io/api/apps/v1\"\n")
	if err := os.MkdirAll(to.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var zip bytes.Buffer
	if err := modzip.CreateFromDir(&zip, gomod.Version{Path: "example.com/lib", Version: "v1.0.0"}, lib.dir); err != nil {
		t.Fatal(err)
	}
	to.write(t, "list", "v1.0.0\n")
	to.write(t, "v1.0.0.info", `{"Version":"v1.0.0"}`)
	to.write(t, "v1.0.0.mod", goMod)
	to.write(t, "v1.0.0.zip", zip.String())
}

// copyFolder copies the files below a folder into another, which may exist.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
