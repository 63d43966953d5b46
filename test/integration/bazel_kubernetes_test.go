//go:build integration && linux

package integration

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kubernetesTests are packages with few dependencies, about twenty of them with tests.
var kubernetesTests = []string{
	"k8s.io/component-base/logs/...",
	"k8s.io/component-base/featuregate",
	"k8s.io/apimachinery/pkg/api/resource",                // fills API types with random values
	"k8s.io/apimachinery/pkg/util/intstr",                 // likewise: fails with a release's tags
	"k8s.io/apimachinery/pkg/util/managedfields/internal", // reads a file of k8s.io/kubernetes
	"k8s.io/streaming/pkg/httpstream/spdy",                // imports a module that no component links
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pubkeypin",    // embeds fixtures
	"k8s.io/kubernetes/test/conformance",                  // reads Go files in testdata
	"pkg/kubelet/cm/containermap", "pkg/util/slice", "pkg/util/tail", "pkg/util/hash", "pkg/util/parsers",
}

// resultLine is a line of Bazel's summary, about a test target: whether its result is cached, and what it is.
var resultLine = regexp.MustCompile(`(?m)^@*(\S+//\S*:\S+)\s+(\(cached\) )?(PASSED|FAILED|TIMEOUT|NO STATUS|FAILED TO BUILD)`)

// results returns the outcomes that Bazel prints, by target, and the targets that it has tested now.
func (r result) results() (outcomes map[string]string, now []string) {
	outcomes = map[string]string{}
	for _, line := range resultLine.FindAllStringSubmatch(r.stdout+r.stderr, -1) {
		if outcomes[line[1]] = line[3]; line[2] == "" {
			now = append(now, line[1])
		}
	}
	slices.Sort(now)
	return outcomes, now
}

// Bazel runs Kubernetes' own tests, with what they read and import; and after a patch again those that depend on it, and no others.
func TestBazelRunsKubernetesTests(t *testing.T) {
	needBazel(t)
	large(t, "Kubernetes' tests by Bazel")
	tr := bazelTree(t)
	t.Cleanup(func() {
		for _, args := range [][]string{{"checkout", "-q", "."}, {"clean", "-fdq"}} {
			_ = command(tr.dir, nil, "git", args...).Run()
		}
	})
	what := "WHAT=" + strings.Join(kubernetesTests, " ")
	first, _ := tr.make(t, "bazel-test", what).ok(t).results()
	if len(first) < 20 {
		t.Errorf("only %d packages were tested: %v", len(first), slices.Sorted(maps.Keys(first)))
	}
	if _, again := tr.make(t, "bazel-test", what).ok(t).results(); len(again) > 0 {
		t.Errorf("tested again with nothing changed: %v", again)
	}

	// One patch makes a test fail, another one lets a test hang.
	const broken, hanging = "patches/0001-broken.patch", "patches/0002-hanging.patch"
	tr.writePatch(t, broken, "staging/src/k8s.io/component-base/logs/logreduction/logreduction.go",
		"func (l *LogReduction) ShouldMessageBePrinted(message string, parentID string) bool {", "\treturn false")
	tr.writePatch(t, hanging, "pkg/util/slice/slice.go", "func CopyStrings(s []string) []string {", "\tfor {\n\t}")
	tr.make(t, "bazel-test", what).fails(t, 2, "make update") // Bazel would test the code without them
	tr.make(t, "update", "WHAT=generated-files").ok(t)
	const settings = "user.bazelrc"
	was := tr.read(t, settings)
	defer tr.write(t, settings, was)
	tr.append(t, settings, "test --test_timeout=20\n")
	r := tr.make(t, "bazel-test", what).fails(t, 2)
	outcomes, now := r.results()
	want := maps.Clone(first)
	want["io_k8s_component_base//logs/logreduction:logreduction_test"] = "FAILED"
	want["io_k8s_kubernetes//pkg/util/slice:slice_test"] = "TIMEOUT"
	if !maps.Equal(outcomes, want) {
		t.Errorf("it gives %v, and was to give %v: %v", outcomes, want, r)
	}
	if len(now) != 2 {
		t.Errorf("tested after a patch of two packages that no other one imports: %v", now)
	}
}

func TestBazelNamesUnknownPackages(t *testing.T) {
	tr := bazelTree(t)
	tr.make(t, "bazel-test", "WHAT=k8s.io/client-goo/rest").fails(t, 2, "k8s.io/client-go")
	tr.make(t, "bazel-test", "WHAT=k8s.io/kubernetes/pkg/no-such-package").fails(t, 2, "pkg/no-such-package")
}
