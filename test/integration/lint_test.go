//go:build integration

package integration

import (
	"runtime"
	"strings"
	"testing"
)

// Upstream's own rules see what patches bring in, each by one line.
func TestLintOfPatches(t *testing.T) {
	lateLane.join(t)
	large(t, "lint, which analyzes Kubernetes' packages")
	tr := stamped(t)
	const file, pkg = "pkg/features/kube_features.go", "k8s.io/kubernetes/pkg/features"
	tr.writePatch(t, "patches/0001-imports.patch", file, "import (", "\t\"crypto/md5\"\n\n\t_ \"github.com/google/cadvisor/lib/model\"")
	tr.writePatch(t, "patches/0002-names.patch", file, "// Every feature gate should have an entry here",
		"\nconst Unlisted featuregate.Feature = \"Unlisted\"\n\nfunc sum() [16]byte { return md5.Sum(nil) }\n")
	tr.writePatch(t, "patches/0003-gate.patch", file, "var defaultVersionedKubernetesFeatureGates = ",
		"\tUnlisted: {\n\t\t{Version: version.MustParse(\"1.99\"), Default: false, PreRelease: featuregate.Alpha},\n\t},")
	found := tr.slipway(t, "lint", "--platform", runtime.GOOS+"/"+runtime.GOARCH, "--sarif", "lint.sarif", pkg).fails(t, 1)
	if sarif := tr.read(t, "lint.sarif"); !strings.Contains(sarif, `"ruleId": "forbidigo"`) {
		t.Errorf("the SARIF file lacks a problem:\n%s", sarif)
	}
	for _, part := range []string{
		"/" + file + ":38:30: forbidigo: use of `md5.Sum` forbidden because",
		`import-boss: "` + pkg + `" -> "github.com/google/cadvisor/lib/model" is forbidden by .import-restrictions`,
		"feature-gates: versioned feature list: ", "- name: Unlisted",
	} {
		if !strings.Contains(found.stdout, part) {
			t.Errorf("lacks %q: %v", part, found)
		}
	}
	if strings.Contains(found.stdout, "logcheck: ") {
		t.Errorf("upstream's own code is blamed: %v", found)
	}
}
