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

// The commands of "One month" in docs/distribution.md work, one after another, in a distribution.
func TestOneMonthOfAMaintainer(t *testing.T) {
	rare(t, "it makes two releases of another minor")
	needNodes(t)
	own := clone(t)
	own.make(t, "slipway").ok(t)
	tr := tree{dir: own.path("../acme")}
	run(t, own.dir, nil, own.path("_output/bin/slipway"), "init", tr.dir, "--module", "acme.example/kubernetes").ok(t)
	original := kubernetesOf(t, tr)
	tr.month(t, story(t, own, true), "Kubernetes "+original+" "+otherMinor, // the table of the bump
		"patches/0001-scheduler-name-the-distribution.patch applies", "The scheduler of Acme is a",
		"=> k8s.io/kubernetes "+otherMinor+"-patched.p")
}

// Its short ones are a bump to another minor and a patch. Then the smallest component is made, and the tree moves back.
func TestTreeMovesToAnotherMinorAndBack(t *testing.T) {
	rare(t, "modules of another minor are fetched, and its generators run")
	treeLane.join(t)
	tr := clone(t)
	original := kubernetesOf(t, tr)
	tr.month(t, story(t, tr, false), "Kubernetes "+original+" "+otherMinor, "patches/0001-scheduler-name-the-distribution.patch applies")
	tr.make(t, "kube-log-runner").ok(t)
	run(t, tr.dir, nil, "git", "reset", "-q", "--hard", "HEAD~1").ok(t) // the patch's commit
	tr.hasMoved(t, original)
}

// month runs steps of the document in a tree, and requires that they print texts.
func (tr tree) month(t *testing.T, steps []string, said ...string) {
	t.Helper()
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
	for _, want := range said {
		if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
}

// story returns the blocks of commands of the part "One month" of a tree's document, or only the short ones.
func story(t *testing.T, tr tree, all bool) (steps []string) {
	t.Helper()
	_, text, _ := strings.Cut(tr.read(t, "docs/distribution.md"), "\n## One month\n")
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := regexp.MustCompile("(?s)(<!-- soak -->\n)?```sh\n(.*?)```\n").FindAllStringSubmatch(text, -1)
	for _, m := range blocks {
		if m[1] == "" || all {
			steps = append(steps, m[2])
		}
	}
	if len(blocks) < 11 {
		t.Fatalf("the document has %d blocks of commands", len(blocks))
	}
	return steps
}
