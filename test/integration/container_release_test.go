//go:build integration

package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const dockerized = "_output/dockerized/bin"

var quickByContainer = []string{"release", "--quick", "--road=container"}

func TestContainerReleaseEqualsTheLocalOne(t *testing.T) {
	needEngine(t)
	tr := newSmallTree(t)
	local := tr.quickRelease(t, "local")
	tr.remove(t, "_output")

	since := time.Now()
	es := tr.jsonRun(t, quickByContainer...)
	happened := tr.happened(t, since)
	if diff := cmp.Diff(local, tr.identity(t)); diff != "" {
		t.Errorf("releases (-local road +container road):\n%s", diff)
	}
	checkSums(t, tr, "sha256")
	es.hasSteps(t, "Docker Engine ", "made data container ", "sent sources: ", "fetched 4 files, ")
	es.compiledBy(t, happened.started("build"))
	if n := len(happened.started("build")); n != 1 {
		t.Errorf("%d build containers were started for one platform", n)
	}
	if n := len(happened.started("rsync")); n != 1 {
		t.Errorf("%d rsync containers were started, want one for both ways", n)
	}
	if data := happened.started("data"); len(data) > 0 {
		t.Errorf("the data container was started: %q", data)
	}
	tr.onlyData(t)
	got := run(t, tr.dir, nil, tr.path(dockerized+"/linux/"+hostArch+"/kubectl")).ok(t)
	if want := "hello from kubectl\n"; got.stderr != want {
		t.Errorf("kubectl says %q, want %q", got.stderr, want)
	}
	for _, name := range []string{"kube-apiserver", "kube-log-runner", "kubectl", "kubelet"} {
		if tr.exists(hostBin(name)) {
			t.Errorf("%s was made by the local road, too", name)
		}
	}

	t.Run("no-op", func(t *testing.T) {
		since := time.Now()
		tr.jsonRun(t, quickByContainer...).didNothing(t)
		tr.happened(t, since).none(t)
	})
	tr = tr.with(tr.stampEnv(t)...)
	t.Run("edit", func(t *testing.T) {
		tr.edit(t, "cmd/kubelet/main.go", `"kubelet"`, `"a kubelet"`)
		es := tr.jsonRun(t, "build", "--road=container")
		es.did(t, "compile linux/"+hostArch+" by container kubelet")
		es.hasSteps(t, "sent sources: 1 files, ")
		if got := run(t, tr.dir, nil, tr.path(dockerized+"/linux/"+hostArch+"/kubelet")).ok(t).stderr; got != "a kubelet\n" {
			t.Errorf("the edited kubelet says %q", got)
		}
	})
	t.Run("damage", func(t *testing.T) {
		name := dockerized + "/linux/" + hostArch + "/kubectl"
		sum := tr.sum(t, name)
		tr.flip(t, name)
		tr.jsonRun(t, "build", "--road=container").did(t, "compile linux/"+hostArch+" by container kubectl")
		if got := tr.sum(t, name); got != sum {
			t.Errorf("the binary that was damaged is %s, was %s", got, sum)
		}
	})
}

// stampEnv returns variables that fix the tree's version as that of a clean commit, whatever is changed in it from now on.
func (tr tree) stampEnv(t *testing.T) []string {
	t.Helper()
	s := tr.stamp(t)
	return []string{"KUBE_GIT_VERSION=" + s.GitVersion, "KUBE_GIT_COMMIT=" + s.GitCommit, "KUBE_GIT_TREE_STATE=clean"}
}

// Every platform has its own compile, and all of them share one sync.
func TestContainerRoadCompilesForOtherPlatforms(t *testing.T) {
	needEngine(t)
	tr := smallTree(t).with("KUBE_BUILD_PLATFORMS=linux/arm64 windows/amd64")
	since := time.Now()
	es := tr.jsonRun(t, "build", "kubectl", "--road=container")
	happened := tr.happened(t, since)
	es.did(t, "compile linux/arm64 by container kubectl", "compile windows/amd64 by container kubectl")
	es.compiledBy(t, happened.started("build"))
	sums := map[string]string{}
	for _, name := range []string{"linux/arm64/kubectl", "windows/amd64/kubectl.exe"} {
		sums[name] = tr.sum(t, dockerized+"/"+name)
	}
	tr.slipway(t, "build", "kubectl").ok(t)
	for name, sum := range sums {
		if local := tr.sum(t, binaries+"/"+name); sum != local {
			t.Errorf("%s is %s by container, %s by the local road", name, sum, local)
		}
	}
}

// The module that is validated comes with the Go in the container, and is the same bytes there.
func TestContainerRoadLinksTheModuleForFIPS(t *testing.T) {
	rare(t, "cryptography is compiled for it on both roads")
	needEngine(t)
	tr := newSmallTree(t)
	tr.edit(t, "release/release.yaml", "go:\n", "go:\n  fips: v1.0.0\n")
	tr.edit(t, "cmd/kubectl/main.go", "package main\n", "package main\n\nimport _ \"crypto/tls\"\n")
	tr.slipway(t, "build", "kubectl", "--road=container").ok(t)
	tr.slipway(t, "build", "kubectl").ok(t)
	name := "/linux/" + hostArch + "/kubectl"
	if c, l := tr.sum(t, dockerized+name), tr.sum(t, binaries+name); c != l {
		t.Errorf("kubectl is %s by container, %s by the local road", c, l)
	}
	got := run(t, tr.dir, nil, "go", "version", "-m", tr.path(dockerized+name)).ok(t).stdout
	if !strings.Contains(got, "GOFIPS140=v1.0.0-") {
		t.Errorf("kubectl is compiled without the module:\n%s", got)
	}
}

func TestContainerDebugBuildIsDoneOnce(t *testing.T) {
	needEngine(t)
	tr := smallTree(t).with("DBG=1")
	build := []string{"build", "kube-log-runner", "--road=container"}
	id := "compile linux/" + hostArch + " by container kube-log-runner"
	tr.jsonRun(t, build...).did(t, id)
	debug := tr.sum(t, dockerized+"/linux/"+hostArch+"/kube-log-runner")
	since := time.Now()
	tr.jsonRun(t, build...).didNothing(t)
	tr.happened(t, since).none(t)
	if got := run(t, tr.dir, nil, "file", "--brief", tr.path(dockerized+"/linux/"+hostArch+"/kube-log-runner")); got.code == 0 &&
		!strings.Contains(got.stdout, "not stripped") {
		t.Errorf("the debug build has no symbols: %s", got.stdout)
	}

	plain := tr.with("DBG=")
	plain.jsonRun(t, build...).did(t, id)
	if plain.sum(t, dockerized+"/linux/"+hostArch+"/kube-log-runner") == debug {
		t.Error("the build without DBG=1 is the one with it")
	}
	tr.jsonRun(t, build...).did(t, id)
	if got := tr.sum(t, dockerized+"/linux/"+hostArch+"/kube-log-runner"); got != debug {
		t.Errorf("the debug build is %s, was %s", got, debug)
	}
}

func TestContainersOfTwoTreesAreSeparate(t *testing.T) {
	needEngine(t)
	one, other := newSmallTree(t), newSmallTree(t)
	build := []string{"build", "kubelet", "--road=container"}
	other.edit(t, "cmd/kubelet/main.go", `"kubelet"`, `"another kubelet"`)
	one.jsonRun(t, build...)
	other.jsonRun(t, build...)
	for tr, want := range map[string]string{one.dir: "kubelet\n", other.dir: "another kubelet\n"} {
		if got := run(t, tr, nil, "_output/dockerized/bin/linux/"+hostArch+"/kubelet").ok(t).stderr; got != want {
			t.Errorf("the kubelet of %s says %q, want %q", tr, got, want)
		}
	}
	before := other.belongings(t)
	if len(before) < 7 { // a container, five volumes, an image
		t.Errorf("the other tree has only %q", before)
	}
	id := one.id(t)
	cleaned := one.slipway(t, "clean").ok(t)
	if !strings.Contains(cleaned.stdout, "removed slipway-"+id+"-data\n") || strings.Contains(cleaned.stdout, other.id(t)) {
		t.Errorf("slipway clean does not print what it removes: %v", cleaned)
	}
	if left := one.belongings(t); len(left) > 0 {
		t.Errorf("after slipway clean the engine still has %q", left)
	}
	if after := other.belongings(t); !slices.Equal(before, after) {
		t.Errorf("the other tree had %q in the engine, and has %q", before, after)
	}
	since := time.Now()
	other.jsonRun(t, build...).didNothing(t)
	other.happened(t, since).none(t)
	// It still has its caches: only the edited package is compiled.
	other.edit(t, "cmd/kubelet/main.go", `"another kubelet"`, `"one more kubelet"`)
	if packages := other.jsonRun(t, build...).packagesCompiled(); len(packages) > 2 {
		t.Errorf("after one edit %d packages are compiled: %v", len(packages), packages)
	}
}

// packagesCompiled returns the packages that the Go command in a container says it compiles.
func (es events) packagesCompiled() []string {
	var packages []string
	for _, e := range es {
		if e.Kind == "progress" && strings.Contains(e.By, "container ") && (strings.Contains(e.Text, "/") || e.Text == "runtime") &&
			!strings.Contains(e.Text, " ") {
			packages = append(packages, e.Text)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}
