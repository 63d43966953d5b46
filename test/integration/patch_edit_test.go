//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// maker is who commits in copies.
var maker = []string{
	"GIT_AUTHOR_NAME=Kim", "GIT_AUTHOR_EMAIL=kim@acme.example", "GIT_AUTHOR_DATE=2026-11-20T23:53:00Z",
	"GIT_COMMITTER_NAME=Kim", "GIT_COMMITTER_EMAIL=kim@acme.example", "GIT_COMMITTER_DATE=2026-11-20T23:53:00Z",
}

// A patch of Kubernetes is edited in upstream's repository: two modules change, and the patch is the same after every way around.
func TestPatchIsEditedInUpstreamsRepository(t *testing.T) {
	rare(t, "git takes three minutes of processor time for upstream's repository; package patching's tests have small ones")
	cloneLane.join(t)
	tr := clone(t)
	tr.slipway(t, "patch", "edit").ok(t)
	k8s := tree{dir: tr.path("_output/edit/kubernetes"), env: maker}
	git := func(args ...string) string {
		t.Helper()
		return run(t, k8s.dir, k8s.env, "git", args...).ok(t).stdout
	}
	upstream := strings.TrimSpace(git("rev-parse", "HEAD"))
	const scheduler, clientGo = "cmd/kube-scheduler/app/server.go", "staging/src/k8s.io/client-go/rest/config.go"
	k8s.edit(t, scheduler, "Starting Kubernetes Scheduler", "Starting the scheduler of Acme")
	k8s.edit(t, clientGo, "package rest\n", "package rest // import \"k8s.io/client-go/rest\"\n")
	git("commit", "-q", "-a", "-m", "scheduler: name the distribution")
	patched := git("rev-parse", "HEAD^{tree}")
	tr.slipway(t, "patch", "save").ok(t)
	const name = "patches/0001-scheduler-name-the-distribution.patch"
	patch := tr.read(t, name)
	for _, file := range []string{scheduler, clientGo} {
		if !strings.Contains(patch, "\n+++ b/"+file+"\n") {
			t.Errorf("the patch does not change %s:\n%s", file, patch)
		}
	}
	if entries, err := os.ReadDir(tr.path("patches")); err != nil || len(entries) != 1 {
		t.Errorf("patches: %v, %v", entries, err)
	}

	type patchListed struct {
		Patch, Verdict string
		Offset         int
		Files          []string
	}
	var listed []patchListed
	if err := json.Unmarshal([]byte(tr.slipway(t, "--json", "patch", "list").ok(t).stdout), &listed); err != nil {
		t.Fatal(err)
	}
	listed = slices.DeleteFunc(listed, func(l patchListed) bool { return strings.HasPrefix(l.Patch, "images/") }) // those of the tree itself
	if len(listed) != 1 || listed[0].Patch != name || listed[0].Verdict != "applies" || listed[0].Offset != 0 || len(listed[0].Files) != 2 {
		t.Errorf("listed: %+v", listed)
	}

	// The same by a diff on standard input, whose lines are elsewhere.
	diff := strings.NewReplacer("@@ -18", "@@ -19", " +18", " +19").Replace(git("diff", upstream, "--", scheduler))
	tr.slipway(t, "patch", "drop", "0001").ok(t)
	if tr.exists(name) {
		t.Error("a dropped patch is still there")
	}
	add := command(tr.dir, nil, slipway(t), "patch", "add", "--name", "acme", "-")
	add.Stdin = strings.NewReader(diff)
	if out, err := add.CombinedOutput(); err != nil || !strings.Contains(string(out),
		"added patches/acme.patch: applies, moved by -10 lines") {
		t.Errorf("add: %v\n%s", err, out)
	}
	if got := tr.read(t, "patches/acme.patch"); got != diff {
		t.Errorf("the patch that was added is\n%s", got)
	}
	tr.slipway(t, "patch", "edit").ok(t)
	if got := git("log", "--format=%s", upstream+".."); got != "acme\n" {
		t.Errorf("commits:\n%s", got)
	}

	// And back, in the same copy.
	tr.slipway(t, "patch", "drop", "acme").ok(t)
	if err := os.MkdirAll(tr.path("patches"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.write(t, name, patch)
	tr.slipway(t, "patch", "edit").ok(t)
	if again := git("rev-parse", "HEAD^{tree}"); again != patched {
		t.Errorf("the patched code is %s, and then %s", patched, again)
	}
	tr.slipway(t, "patch", "save").ok(t)
	if got := tr.read(t, name); got != patch {
		t.Errorf("the patch is now\n%s", got)
	}
}

// etcd is a repository of several modules, too.
func TestOtherProjectIsEdited(t *testing.T) {
	cloneLane.join(t)
	tr := clone(t)
	tr.slipway(t, "patch", "edit", "etcd").ok(t)
	etcd := tree{dir: tr.path("_output/edit/etcd"), env: maker}
	etcd.edit(t, "server/etcdmain/main.go", "package etcdmain\n", "package etcdmain // of Acme\n")
	etcd.edit(t, "client/v3/doc.go", "package clientv3\n", "package clientv3 // of Acme\n")
	run(t, etcd.dir, etcd.env, "git", "commit", "-q", "-a", "-m", "Name it").ok(t)
	tr.slipway(t, "patch", "save", "etcd").ok(t)
	if got := tr.slipway(t, "patch", "list").ok(t).stdout; !strings.Contains(got, "images/etcd/patches/0001-Name-it.patch") {
		t.Errorf("listed:\n%s", got)
	}
}

// A disk that is full leaves the copy and the patches as they were.
func TestFullDiskLeavesPatchesAsTheyWere(t *testing.T) {
	needRoot(t)
	tr := clone(t)
	output := tr.path("_output")
	if err := os.Mkdir(output, 0o755); err != nil {
		t.Fatal(err)
	}
	const room = 24 << 20
	if got := run(t, tr.dir, nil, "mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", room), "slipway-test", output); got.code != 0 {
		missing(t, "file systems cannot be mounted here: "+got.stderr)
	}
	t.Cleanup(func() { run(t, "/", nil, "umount", output).ok(t) })

	tr.slipway(t, "patch", "edit").fails(t, 1, "no space left on device")
	if left, err := os.ReadDir(tr.path("_output/edit")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	tr.slipway(t, "patch", "edit", "metrics-server").ok(t)
	copied := tree{dir: tr.path("_output/edit/metrics-server"), env: maker}
	copied.edit(t, "cmd/metrics-server/metrics-server.go", "package main\n", "package main // of Acme\n")
	run(t, copied.dir, copied.env, "git", "commit", "-q", "-a", "-m", "Name it").ok(t)
	fill := tr.path("_output/fill")
	if err := os.WriteFile(fill, make([]byte, room), 0o644); err == nil {
		t.Fatal("there is still room")
	}
	tr.slipway(t, "patch", "save", "metrics-server").fails(t, 1, "space")
	if tr.exists("images/metrics-server/patches") {
		t.Error("half a save is there")
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	tr.slipway(t, "patch", "save", "metrics-server").ok(t) // _output is on another file system here
	if !tr.exists("images/metrics-server/patches/0001-Name-it.patch") {
		t.Error("no patch was saved")
	}
}
