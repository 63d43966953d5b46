//go:build integration && soak

package integration

import (
	"testing"
	"time"
)

// Edit is killed while it lays Kubernetes out, many times.
func TestKilledEditOfKubernetes(t *testing.T) {
	tr := clone(t)
	tr.slipway(t, "patch", "edit").ok(t)
	k8s := tree{dir: tr.path("_output/edit/kubernetes"), env: maker}
	before := run(t, k8s.dir, k8s.env, "git", "rev-parse", "HEAD").ok(t).stdout
	for after := time.Second; after < 12*time.Second; after += time.Second {
		p := tr.start(t, slipway(t), "patch", "edit", "--force")
		p.after(after)
		p.kill(t)
		if got := run(t, k8s.dir, k8s.env, "git", "status", "--porcelain").ok(t).stdout; got != "" {
			t.Fatalf("killed after %s: %s", after, got)
		}
		if got := run(t, k8s.dir, k8s.env, "git", "rev-parse", "HEAD").ok(t).stdout; got != before {
			t.Fatalf("killed after %s: %s, want %s", after, got, before)
		}
	}
}
