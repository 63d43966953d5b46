//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of "One month" in docs/distribution.md work, one after another, in a clone. In CI these are a bump to another minor and a
// patch, after which the smallest component is made; the soak test runs all.
func TestOneMonthOfAMaintainer(t *testing.T) {
	if soak {
		needNodes(t)
	}
	containerLane.join(t)
	tr := clone(t)
	original := kubernetesOf(t, tr)
	steps, left := story(t, tr.read(t, "docs/distribution.md"))
	if left > 0 {
		t.Logf("%d steps of the story take minutes: make soak", left)
	}
	const fix = `diff --git a/pkg/kubelet/types/fix.go b/pkg/kubelet/types/fix.go
new file mode 100644
--- /dev/null
+++ b/pkg/kubelet/types/fix.go
@@ -0,0 +1,4 @@
+package types
+
+// Fixed says that the hole is closed.
+const Fixed = true
`
	if err := os.WriteFile(filepath.Join(tr.dir, "..", "fix.patch"), []byte(fix), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\nsudo() { \"$@\"; }\n" // the test is run by root
	for i, commands := range steps {
		script += fmt.Sprintf("echo '== step %d' $SECONDS\n%s", i+1, commands)
	}
	who := []string{
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@acme.example", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@acme.example",
	}
	got := run(t, tr.dir, who, "bash", "-c", script).ok(t)
	for _, line := range regexp.MustCompile(`(?m)^== step.*`).FindAllString(got.stdout, -1) {
		t.Log(line, "s")
	}
	said := []string{
		"Kubernetes " + original + " " + otherMinor, // the table of the bump
		"patches/0001-scheduler-name-the-distribution.patch applies",
	}
	if soak {
		said = append(said, "The scheduler of Acme is a", "=> k8s.io/kubernetes "+otherMinor+"-patched.p")
	}
	for _, want := range said {
		if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	if !soak {
		tr.make(t, "kube-log-runner").ok(t)
		run(t, tr.dir, nil, "git", "reset", "-q", "--hard", "HEAD~1").ok(t) // the patch's commit
		tr.hasMoved(t, original)
	}
}

// story returns the blocks of commands of the part "One month" of a document, and how many it left out.
func story(t *testing.T, text string) (steps []string, left int) {
	t.Helper()
	_, text, _ = strings.Cut(text, "\n## One month\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, m := range regexp.MustCompile("(?s)(<!-- soak -->\n)?```sh\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		if m[1] != "" && !soak {
			left++
			continue
		}
		steps = append(steps, m[2])
	}
	if len(steps)+left < 11 {
		t.Fatalf("the document has %d blocks of commands", len(steps)+left)
	}
	return steps, left
}
