//go:build integration && soak

package integration

import (
	"os"
	"path/filepath"
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
func TestKubernetesUnitTestsFailAsDocumented(t *testing.T) { failAsDocumented(t, "k8s.io/kubernetes/") }

func TestStagingUnitTestsFailAsDocumented(t *testing.T) {
	prefixes := []string{"k8s.io/kms", "k8s.io/kube-", "k8s.io/kubectl", "k8s.io/kubelet"}
	for c := 'a'; c <= 'z'; c++ {
		if c != 'k' {
			prefixes = append(prefixes, "k8s.io/"+string(c))
		}
	}
	failAsDocumented(t, prefixes...)
}

// failAsDocumented runs all unit tests of packages whose paths begin with a prefix.
func failAsDocumented(t *testing.T, prefixes ...string) {
	t.Helper()
	tr := baseline(t).tree
	r := run(t, tr.dir, tr.env, "go", append([]string{"run", "./test/units"}, prefixes...)...).ok(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(here, "..", "..", "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.stdout) {
		if pkg, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(pkg, "`k8s.io/") &&
			!strings.Contains(string(document), pkg) {
			t.Errorf("fails, and docs/testing.md does not say why: %s", line)
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
