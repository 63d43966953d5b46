//go:build integration

package integration

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What another machine's go command has compiled, the container road does not compile: neither whole binaries nor, after an edit, the
// packages that did not change. The other machine used the local road.
func TestContainersTakePackagesOfASharedCache(t *testing.T) {
	needEngine(t)
	keys := t.TempDir()
	run(t, keys, []string{"COSIGN_PASSWORD="}, slipway(t), "keys", "new", "ci").ok(t)
	at := "SLIPWAY_CACHE=grpc://" + cacheServer(t)
	build := func(tr tree, road, component string) string {
		got := tr.slipway(t, "--progress=plain", "build", component, "--road="+road).ok(t)
		return got.stdout + got.stderr
	}
	const fetched, sent = " compiled packages fetched", "sent compiled packages"
	first := newSmallTree(t).with(at, "SLIPWAY_CACHE_UPLOAD=true", "SLIPWAY_CACHE_SIGNING_KEY="+filepath.Join(keys,
		"ci.key"), "COSIGN_PASSWORD=",
		"GOCACHE="+t.TempDir())
	build(first, "local", "kubectl")

	second := newSmallTree(t).with(at, "SLIPWAY_CACHE_KEYS="+filepath.Join(keys, "ci.pub"), "XDG_CACHE_HOME="+t.TempDir())
	edit := func(from, to string) { second.edit(t, "cmd/kubectl/main.go", from, to) }
	edit("func main() {", "func main() { print();")
	if said := build(second, "container", "kubectl"); !strings.Contains(said, fetched) || !strings.Contains(said, sent) {
		t.Errorf("in new volumes, it says %s", said)
	}
	edit("print();", "println();")
	if said := build(second, "container", "kubectl"); strings.Contains(said, fetched) || strings.Contains(said, sent) {
		t.Errorf("the second time, it says %s", said)
	}
	alone := second.with("SLIPWAY_CACHE=off")
	build(alone, "local", "kubectl")
	file := "bin/linux/" + runtime.GOARCH + "/kubectl"
	if got, want := second.sum(t, "_output/dockerized/"+file), second.sum(t, "_output/local/"+file); got != want {
		t.Errorf("kubectl has the SHA-256 %s, want %s", got, want)
	}
	if got := second.slipway(t, "build", "kubectl", "--road=container", "--no-cache", "--dry-run").ok(t).stdout; !strings.Contains(got,
		"a cache had its result") {
		t.Errorf("without the cache, the plan is %s", got)
	}
	alone.slipway(t, "build", "kubectl", "--road=container", "--no-cache").ok(t) // it fills the volumes' own cache
	edit("println();", "println(1);")
	if said := build(second, "container", "kubectl"); strings.Contains(said, fetched) || strings.Contains(said, sent) {
		t.Errorf("with packages of its own, it says %s", said)
	}
	if got := second.slipway(t, "build", "kubectl", "--road=container", "--no-cache", "--dry-run").ok(t).stdout; strings.Contains(got,
		"a cache had its result") {
		t.Errorf("with packages of its own, the plan is %s", got)
	}
}
