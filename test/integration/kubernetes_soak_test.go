//go:build integration && soak

package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestKubernetesOwnIntegrationTests(t *testing.T) {
	tr := baseline(t).tree
	const pkg = "k8s.io/kubernetes/test/integration/secrets"
	r := tr.make(t, "test-integration", "WHAT="+pkg).ok(t)
	if !strings.Contains(r.stdout, "ok  \t"+pkg+"\t") {
		t.Errorf("%v", r)
	}
}

// Of Kubernetes' unit tests, only those fail that the document names.
func TestKubernetesUnitTestsFailAsDocumented(t *testing.T) {
	failAsDocumented(t, baseline(t).tree, []string{"testing.md"}, "k8s.io/kubernetes/")
}

func TestStagingUnitTestsFailAsDocumented(t *testing.T) {
	failAsDocumented(t, baseline(t).tree, []string{"testing.md"},
		slices.Concat(stagingOfK, letters("k8s.io/", "abcdefghijlmnopqrstuvwxyz"))...)
}

// stagingOfK are the prefixes of Kubernetes' modules whose names begin with k, but not of k8s.io/kubernetes.
var stagingOfK = []string{"k8s.io/kms", "k8s.io/kube-", "k8s.io/kubectl", "k8s.io/kubelet"}

// letters returns a prefix with each of some letters after it.
func letters(prefix, of string) []string {
	var prefixes []string
	for _, letter := range of {
		prefixes = append(prefixes, prefix+string(letter))
	}
	return prefixes
}

// failAsDocumented runs the unit tests of packages whose paths begin with a prefix: args are flags and prefixes of test/units. If one fails
// that none of the documents names, that is an error.
func failAsDocumented(t *testing.T, tr tree, documents []string, args ...string) {
	t.Helper()
	r := run(t, tr.dir, tr.env, "go", append([]string{"run", "./test/units"}, args...)...).ok(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, name := range documents {
		document, err := os.ReadFile(filepath.Join(here, "..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, document...)
	}
	for line := range strings.Lines(r.stdout) {
		if pkg, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(pkg, "`k8s.io/") &&
			!strings.Contains(string(text), pkg) {
			t.Errorf("fails, and no document says why: %s", line)
		}
	}
	t.Log(r.stdout)
}

func TestAllKubectlCommandTests(t *testing.T) {
	// One suite fetches a file from the network, which a build machine may not have.
	names := strings.Fields(baseline(t).tree.slipway(t, "test-cmd", "--list").ok(t).stdout)
	var suites []string
	for _, name := range names {
		if name != "multi_resources" {
			suites = append(suites, name)
		}
	}
	if len(suites) < 80 {
		t.Errorf("%d suites: %v", len(suites), suites)
	}
	baseline(t).tree.make(t, "test-cmd", "WHAT="+strings.Join(suites, " ")).ok(t)
}
