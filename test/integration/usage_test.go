//go:build integration

package integration

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUnknownNamesGetSuggestions(t *testing.T) {
	r := baseline(t)
	mage := r.path("_output/.slipway/mage")
	for _, c := range []struct {
		env, target string
		args        []string
		says        []string
	}{
		{"WHAT=kubeclt", "all", []string{"build", "kubeclt"}, []string{`unknown component "kubeclt"`, "kubectl"}},
		{"KUBE_BUILD_PLATFORMS=linux/amd46", "quickrelease", quickRelease, []string{`unknown platform "linux/amd46"`, "linux/amd64"}},
		{"ROAD=lokal", "quickrelease", quickRelease, []string{`unknown road "lokal"`, "local"}},
	} {
		t.Run(c.env, func(t *testing.T) {
			tr := r.tree.with(c.env)
			run(t, tr.dir, tr.env, mage, c.target).fails(t, 2, c.says...)
			tr.slipway(t, c.args...).fails(t, 2, c.says...)
		})
	}
	r.slipway(t, "buidl").fails(t, 2, `unknown command "buidl"`, "build")
	r.slipway(t, "build", "--platfrom=linux/amd64").fails(t, 2, "--platfrom")
	r.slipway(t, "build", "kube-log-runner", "--platform=darwin/arm64").fails(t, 2, "kube-log-runner is not built for", "darwin/arm64")
}

func TestMistakeInTheCatalogIsReportedWithItsLine(t *testing.T) {
	tr := clone(t)
	const name = "release/release.yaml"
	tr.edit(t, name, "\nregistry:", "\nregistri:")
	line := 1 + strings.Count(strings.Split(tr.read(t, name), "registri:")[0], "\n")
	tr.slipway(t, "build", "kubectl").fails(t, 1, fmt.Sprintf("%s:%d", name, line), "registri")
}

func TestMissingGoIsReported(t *testing.T) {
	tr := clone(t)
	bare := tr.with("PATH=" + withoutGo(t))
	bare.make(t, "kubectl").fails(t, 2, "go is not on PATH: install Go")
	bare.slipway(t, "build", "kubectl").fails(t, 1, "go is not on PATH: install Go")
}

func TestCompileErrorIsPrintedOnceAsGoPrintsIt(t *testing.T) {
	tr := clone(t)
	tr.edit(t, "cmd/kubectl/main.go", "\nfunc main() {", "\nvar wrong int = \"a string\"\n\nfunc main() {\n\tundeclared()\n")
	tags := "-tags=" + buildSettings(t, baseline(t).path(hostBin("kubectl")))["-tags"] // so that no package is compiled again
	plain := run(t, tr.path("cmd"), likeRelease, "go", "build", tags, "-o", os.DevNull, "./kubectl")
	if plain.code == 0 {
		t.Fatal("the source is not broken")
	}
	bySlipway := tr.slipway(t, "build", "kubectl", "kube-log-runner").fails(t, 1)
	if lines := strings.Split(strings.TrimSpace(bySlipway.stderr), "\n"); !strings.HasPrefix(lines[len(lines)-1],
		"error: compile linux/"+hostArch+": ") {
		t.Errorf("the last line is not the error: %v", bySlipway)
	}
	for _, got := range []result{bySlipway, tr.make(t, "kubectl").fails(t, 2)} {
		for line := range strings.Lines(plain.stderr) {
			if n := strings.Count(got.stderr+got.stdout, line); n != 1 {
				t.Errorf("go build prints %q, the user sees it %d times: %v", line, n, got)
			}
		}
	}
}

func TestDryRunPrintsThePlanAndChangesNothing(t *testing.T) {
	r := baseline(t)
	const gone = "package kubernetes-manifests.tar.gz"
	r.remove(t, tars+"/kubernetes-manifests.tar.gz")
	before := snapshot(t, r.dir)
	for target, says := range map[string]string{
		quick: gone + ": output", "quick-release-images": "0 of ", "kubectl": "0 of ",
		"hyperkube": "compile linux/" + hostArch + " hyperkube: new",
		"release":   "go test -timeout=10m -vet=off ./...", "package-tarballs": "compile ", "cross": "compile ",
		"source": "package kubernetes-inputs.tar: new", "clean": "remove _output", "test": "go test -timeout=10m -vet=off ./...",
		"update": "generate generated-files", "verify": "staticcheck", "bench": "go run ./test/bench", "soak": "go run ./test/soak",
		"slipway": "go build", "cluster-up": "slipway cluster up", "cluster-verify": "slipway cluster verify",
		"conformance": "slipway cluster conformance", "cluster-down": "slipway cluster down", "bazel-build": "slipway bazel -- build",
	} {
		got := r.make(t, "-n", target).ok(t)
		if !strings.Contains(got.stdout, says) {
			t.Errorf("it does not print %q: %v", says, got)
		}
	}
	after := snapshot(t, r.dir)
	if !maps.Equal(before, after) {
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if before[name] != after[name] {
				t.Errorf("%s is %s, was %q", name, after[name], before[name])
			}
		}
		t.Errorf("make -n changed the tree: %d files, were %d", len(after), len(before))
	}
	r.jsonRun(t, quickRelease...).did(t, gone)
	r.sameRelease(t, r.tree)
}

// snapshot returns mode, size and time of every file below a folder.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if strings.HasPrefix(rel, ".git") {
			return err // git refreshes its index to find out the state of a tree
		}
		all[rel] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMakeNamesTheComponentsThatItLeavesOut(t *testing.T) {
	r := baseline(t)
	if got := r.make(t).ok(t); !strings.Contains(got.stdout, "not built, unless named ") || !strings.Contains(got.stdout, "hyperkube") {
		t.Errorf("it does not name hyperkube: %v", got)
	}
	if got := r.make(t, "WHAT=kubectl").ok(t); strings.Contains(got.stdout, "not built") {
		t.Errorf("it names components although one was asked for: %v", got)
	}
	r.sameFiles(t, r.tree)
}

func TestHelpListsTheTargets(t *testing.T) {
	r := baseline(t)
	got := r.make(t, "help").ok(t).stdout
	for _, target := range []string{"all", "cross", "release", quick, "source", "release-images", "package-tarballs", "test",
		"update", "verify", "clean"} {
		if !strings.Contains(got, "\n  "+target+" ") {
			t.Errorf("make help does not list %s:\n%s", target, got)
		}
	}
}
