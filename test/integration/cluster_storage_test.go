//go:build integration && linux

package integration

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ofAddons reports whether a check is skipped in a cluster to which no addon was added.
func ofAddons(check string) bool {
	return strings.HasPrefix(check, "storage/") || check == "components/storage"
}

// addsStorage requires of a cluster of two nodes that it gets the addon storage, that this works, and that a check notices if not.
func (tr tree) addsStorage(t *testing.T) {
	from := testRelease(t)
	skipped := tr.slipway(t, "cluster", "verify", "--only", "storage/provisioning").ok(t).stdout
	if !strings.Contains(skipped, "needs storage, which the cluster does not have") {
		t.Errorf("it does not say what the check needs: %s", skipped)
	}
	tr.slipway(t, "cluster", "add", "storage", "--from", t.TempDir()).fails(t, 1, "there is no release.json in ",
		"slipway release --quick --addons")
	tr.slipway(t, "cluster", "add", "stroage", "--from", from).fails(t, 2, `unknown addon "stroage"; did you mean storage?`)
	added := tr.slipway(t, "cluster", "add", "storage", "--from", from).ok(t)
	if status := tr.slipway(t, "cluster", "status").ok(t).stdout; !strings.Contains(status, "Addons: storage\n") {
		t.Errorf("the status does not name the addon: %s", status)
	}
	start := time.Now()
	tr.green(t, 2*time.Minute, "storage")
	t.Logf("added in %v, checked in %v", added.took, time.Since(start))
	tr.red(t, stopped("csi-attacher"), 12*time.Second, "storage/attachment")
}

// retainingClass makes volumes outlive their claims.
func retainingClass(t *testing.T, tr tree) func() {
	t.Helper()
	before := tr.kubectl(t, "get", "storageclass/disk", "-o", "json").ok(t).stdout
	after := strings.Replace(before, `"reclaimPolicy": "Delete"`, `"reclaimPolicy": "Retain"`, 1)
	if after == before {
		t.Fatalf("the class has nothing to change: %s", before)
	}
	file := filepath.Join(t.TempDir(), "class.json")
	set := func(text string) {
		put(t, []byte(text), file)
		tr.kubectl(t, "replace", "--force", "-f", file).ok(t)
	}
	set(after)
	return func() {
		set(before)
		tr.kubectl(t, "delete", "persistentvolumes", "--all", "--wait=false").ok(t)
	}
}

// noStorage removes what the addon storage does for all nodes.
func noStorage(t *testing.T, tr tree) func() {
	return tr.withoutPods(t, "csi-disk-controller", "csi-disk,part=controller", 1)
}
