//go:build integration

package integration

import (
	"os"
	"strings"
	"testing"
)

// Versions of other minors of Kubernetes that the tree can move to. The Go of the older one is too old for slipway, and for some projects.
const (
	otherMinor  = "v1.36.4"
	oldestMinor = "v1.35.4"
)

// hasMoved requires of a tree whose last commit is a bump to another minor that nothing is left to do for it, and that the tree moves back.
func (tr tree) hasMoved(t *testing.T, from string) {
	t.Helper()
	git := func(args ...string) string { return run(t, tr.dir, nil, "git", args...).ok(t).stdout }

	// What upstream selected, and what is generated.
	sameSelection(t, release{tree: tr})
	tr.make(t, "update").ok(t)
	if status := git("status", "--porcelain"); status != "" {
		t.Errorf("the bump left files to generate: %s", status)
	}
	if got := tr.slipway(t, "version").ok(t).stdout; !strings.HasPrefix(got, otherMinor+"+") {
		t.Errorf("version %s", got)
	}

	tr.slipway(t, "bump", from).ok(t)
	git("add", ".")
	if changed := strings.TrimSpace(git("diff", "--cached", "--name-only", "HEAD~1", "--", "cmd", "build", "docs",
		"release/manifests")); changed != "" {
		t.Errorf("after a bump back, these files are not as before: %s\n%s", changed, git("diff", "--cached", "HEAD~1", "--", changed))
	}
}

// kubernetesOf returns the version of Kubernetes that a tree has.
func kubernetesOf(t *testing.T, tr tree) string {
	t.Helper()
	return strings.TrimSpace(run(t, tr.path("cmd"), nil, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").ok(t).stdout)
}

func TestBumpOnAFullDiskChangesNothing(t *testing.T) {
	needRoot(t)
	tr := clone(t)
	output := tr.path("_output")
	if err := os.Mkdir(output, 0o755); err != nil {
		t.Fatal(err)
	}
	// Less than the sources take.
	if got := run(t, tr.dir, nil, "mount", "-t", "tmpfs", "-o", "size=2M", "slipway-test", output); got.code != 0 {
		missing(t, "file systems cannot be mounted here: "+got.stderr)
	}
	t.Cleanup(func() { run(t, "/", nil, "umount", output).ok(t) })
	tr.slipway(t, "bump", otherMinor).fails(t, 1, "no space left on device")
	if status := run(t, tr.dir, nil, "git", "status", "--porcelain").ok(t).stdout; status != "" {
		t.Errorf("changed: %s", status)
	}
	if tr.exists("_output/.slipway/bump/tree") {
		t.Error("half a tree is left behind")
	}
}

func TestTreeOfAnotherMinorBootsAndWorks(t *testing.T) {
	rare(t, "a compile of all of Kubernetes")
	bootsAndWorks(t, otherMinor)
}

func TestTreeOfTheOldestMinorBootsAndWorks(t *testing.T) {
	rare(t, "a compile of all of Kubernetes")
	bootsAndWorks(t, oldestMinor)
}

// bootsAndWorks requires that a release of another version of Kubernetes can be made, and that its cluster passes the checks.
func bootsAndWorks(t *testing.T, version string) {
	needNodes(t)
	tr := clone(t)
	tr.slipway(t, "bump", version).ok(t)
	run(t, tr.dir, nil, "git", "-c", "user.name=A", "-c", "user.email=a@acme.example", "commit", "-qam", "bump").ok(t)
	sameSelection(t, release{tree: tr})
	tr.make(t, quick).ok(t)
	tr.slipway(t, "verify").ok(t)
	t.Cleanup(func() { tr.slipway(t, "cluster", "down").ok(t) })
	tr.slipway(t, "cluster", "up", "--from", tr.path(tars)).ok(t)
	tr.slipway(t, "cluster", "verify").ok(t)
}
