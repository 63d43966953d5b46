//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copied is the folder of upstream's repository in which Kubernetes' own tests run.
const copied = "_output/.slipway/test/kubernetes"

func TestKubernetesOwnUnitTests(t *testing.T) {
	tr := baseline(t).tree
	// The first needs nothing but its package; the second reads a file at the other end of upstream's repository; the third looks at the
	// path of its source.
	packages := []string{"k8s.io/kubernetes/pkg/kubelet/types", "k8s.io/apimachinery/pkg/util/managedfields",
		"k8s.io/apimachinery/pkg/util/naming"}
	what := "WHAT=" + strings.Join(packages, " ")
	tr.with("KUBE_TEST_ARGS=-short").make(t, "test", what).ok(t)
	again := tr.with("KUBE_TEST_ARGS=-short").make(t, "test", what).ok(t)
	for _, pkg := range packages {
		if !strings.Contains(again.stdout, "ok  \t"+pkg+"\t(cached)\n") {
			t.Errorf("%s is not cached: %v", pkg, again)
		}
	}

	// A test fails.
	const test = copied + "/pkg/kubelet/types/fails_test.go"
	tr.write(t, test, "package types\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Error(\"on purpose\") }\n")
	t.Cleanup(func() { tr.remove(t, test) })
	reports := t.TempDir()
	failed := tr.slipway(t, "test", "--junit-dir", reports, packages[0]).fails(t, 1)
	for _, line := range []string{"--- FAIL: TestFails (", "fails_test.go:5: on purpose\n", "failed: " + packages[0] + ": TestFails\n"} {
		if !strings.Contains(failed.stdout, line) {
			t.Errorf("lacks %q: %v", line, failed)
		}
	}
	files, err := filepath.Glob(filepath.Join(reports, "junit_*.xml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("reports %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`failures="1"`, `name="TestFails"`, "on purpose"} {
		if !strings.Contains(string(data), part) {
			t.Errorf("the report lacks %q:\n%s", part, data)
		}
	}

	tr.slipway(t, "test", "./cmd/cloud-controller-manager/app").ok(t) // the tree's own

	tr.slipway(t, "test", "k8s.io/kubernetes/pkg/kubelet/tpyes").fails(t, 2, "did you mean k8s.io/kubernetes/pkg/kubelet/types?")
}

func TestKubectlCommandTests(t *testing.T) {
	treeLane.join(t)
	baseline(t).tree.slipway(t, "test-cmd", "namspace").fails(t, 2, `unknown suite "namspace"; did you mean namespace?`)
	rare(t, "it waits a minute for a control plane, on ports that tests of clusters take")
	need(t, "jq", "jq")
	need(t, "curl", "curl")
	need(t, "openssl", "openssl")
	need(t, "ss", "iproute2")
	r := baseline(t).tree.make(t, "test-cmd", "WHAT=namespace").ok(t)
	if output := r.stdout + r.stderr; !strings.Contains(output, "TESTS PASSED") || !strings.Contains(output, "run_namespace_tests") {
		t.Errorf("%v", r)
	}
}
