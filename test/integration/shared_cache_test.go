//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// One machine stores the results of a release. Another one, which has no Go, makes the same release of them.
func TestReleaseOfASharedCache(t *testing.T) {
	rare(t, "it makes a whole release three times; other tests take results from shared caches, and a script of pkg/cli makes a small "+
		"release of one")
	containerLane.join(t)
	r := baseline(t)
	server, err := remoteServer()
	if err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	for _, name := range []string{"ci", "other"} {
		run(t, keys, []string{"COSIGN_PASSWORD="}, slipway(t), "keys", "new", name).ok(t)
	}
	key := func(name string) string { return filepath.Join(keys, name) }
	at := "SLIPWAY_CACHE=grpc://" + server.Address

	owner := tree{dir: filepath.Join(t.TempDir(), "owner")} // a copy, since nothing changes the shared one
	run(t, "", nil, "cp", "-a", r.dir, owner.dir).ok(t)
	owner = owner.with(at, "SLIPWAY_CACHE_UPLOAD=true", "SLIPWAY_CACHE_SIGNING_KEY="+key("ci.key"), "COSIGN_PASSWORD=")
	// so that a go command runs, whose packages are stored
	owner.remove(t, "_output/local/bin/linux/"+runtime.GOARCH+"/kubectl", "_output/.slipway/links")
	stored := owner.slipway(t, "--progress=plain", "release", "--quick").ok(t)
	if !strings.Contains(stored.stdout+stored.stderr, "results stored") || strings.Contains(stored.stdout+stored.stderr, "not stored") {
		t.Fatalf("storing says %v", stored)
	}
	t.Logf("storing took %v", stored.took)

	bare := clone(t).with("PATH="+withoutGo(t), at)
	bare.slipway(t, "build", "kubectl").fails(t, 2, "no result of the cache would count", "SLIPWAY_CACHE_KEYS")
	other := bare.with("SLIPWAY_CACHE_KEYS="+key("other.pub")).slipway(t, "--progress=plain", "build", "kubectl")
	other.fails(t, 1, "results that do not count", "by the key", "not signed by a key that counts")

	bare = bare.with("SLIPWAY_CACHE_KEYS=" + key("ci.pub"))
	if got := bare.slipway(t, "cache", "status").ok(t).stdout; !strings.Contains(got, "takes results from here: yes") {
		t.Errorf("the cache's status is %s", got)
	}
	takesRelease(t, bare, r)
	if files, err := filepath.Glob(bare.path("_output/local/bin/*/*/*")); err != nil || len(files) > 0 {
		t.Errorf("binaries are here that nobody asked for: %q, %v", files, err)
	}
	bare.slipway(t, "sign", "--key", key("ci.key")).fails(t, 1, "a shared cache had", "--no-cache", "--from-cache")

	bare.slipway(t, "build", "kubectl").ok(t)
	if got, want := bare.sum(t, "_output/bin/kubectl"), r.sum(t, "_output/bin/kubectl"); got != want {
		t.Errorf("kubectl has the SHA-256 %s, want %s", got, want)
	}

	// The other roads make the same bytes, and so take the local road's. They need neither rsync nor an engine nor Bazel for that.
	for name, bin := range map[string]string{"container": "_output/dockerized/bin", "bazel": bazelBinaries} {
		by := clone(t).with("PATH="+withoutGo(t), at, "SLIPWAY_CACHE_KEYS="+key("ci.pub"), "ROAD="+name, "DOCKER_HOST=unix://"+key("none.sock"))
		takesRelease(t, by, r)
		by.slipway(t, "build", "kubectl").ok(t)
		if got, want := by.sum(t, bin+"/linux/"+runtime.GOARCH+"/kubectl"), r.sum(t, "_output/bin/kubectl"); got != want {
			t.Errorf("by the %s road, kubectl has the SHA-256 %s, want %s", name, got, want)
		}
	}

	bare.slipway(t, "images").ok(t) // the layout of images is not fetched with a release
	r.sameRelease(t, bare)
	again := bare.with("SLIPWAY_CACHE=off").slipway(t, "--progress=plain", "release", "--quick").ok(t)
	if !strings.Contains(again.stdout, "unchanged") || strings.Contains(again.stdout, "from the cache") {
		t.Errorf("without the server, the second run says %v", again)
	}
	if got := bare.slipway(t, "build", "--no-cache", "--dry-run", "kubectl").ok(t).stdout; !strings.Contains(got, "a cache had its result") {
		t.Errorf("without the cache, the plan is %s", got)
	}
	committedWithoutGo(t, at, "SLIPWAY_CACHE_KEYS="+key("ci.pub"))
	editedWithTheCacheAlone(t, at, "SLIPWAY_CACHE_KEYS="+key("ci.pub"))
}

// takesRelease requires that a quick release is taken from the cache as a whole, and is the same as another one.
func takesRelease(t *testing.T, fresh tree, want release) {
	t.Helper()
	taken := fresh.slipway(t, "--progress=plain", "release", "--quick").ok(t)
	t.Logf("a fresh clone without Go took %v: %s", taken.took, taken.stdout)
	if tally := regexp.MustCompile(`(?m)^\d+ from the cache in `); !tally.MatchString(taken.stdout) {
		t.Error("actions ran")
	}
	if got, want := fresh.sum(t, tars+"/SHA256SUMS"), want.sum(t, tars+"/SHA256SUMS"); got != want {
		t.Errorf("SHA256SUMS has the SHA-256 %s, want %s", got, want)
	}
}

// committedWithoutGo requires that a machine without Go makes kubectl of the next commit from the one that the cache has, with the bytes
// that a linker makes.
func committedWithoutGo(t *testing.T, settings ...string) {
	t.Helper()
	tr := clone(t)
	run(t, tr.dir, nil, "git", "-c", "user.name=A", "-c", "user.email=a@acme.example", "commit", "-q", "--allow-empty", "-m", "Next").ok(t)
	es := tr.with(settings...).with("PATH="+withoutGo(t)).jsonRun(t, "build", "kubectl")
	es.hasSteps(t, "1 of 1 binaries differ only in the version")
	copied := tr.sum(t, "_output/bin/kubectl")
	tr.cleanOutput(t)
	if es := tr.jsonRun(t, "build", "kubectl"); len(es.steps()) > 0 {
		t.Errorf("without the cache, it was not linked alone: %q", es.steps())
	}
	if linked := tr.sum(t, "_output/bin/kubectl"); copied != linked {
		t.Errorf("kubectl has the SHA-256 %s, and %s if it is linked", copied, linked)
	}
}

// editedWithTheCacheAlone requires that a fresh clone with empty caches of Go compiles an edit of kubectl with the packages and modules
// that the cache has, without any other network, to the bytes of a clone without the cache.
func editedWithTheCacheAlone(t *testing.T, settings ...string) {
	t.Helper()
	edit := func(tr tree) { tr.edit(t, "cmd/kubectl/main.go", "func main() {\n", "func main() {\n\tprint()\n") }
	plain, fresh := clone(t), clone(t).with(settings...).with("HOME="+t.TempDir(), "GOPROXY=off", "GOSUMDB=off", "GOCACHE=",
		"GOMODCACHE=", "GOPATH=")
	edit(plain)
	edit(fresh)
	got := fresh.slipway(t, "--progress=plain", "build", "kubectl").ok(t)
	t.Logf("after an edit, a fresh clone with empty caches took %v", got.took)
	if !strings.Contains(got.stdout, " compiled packages fetched, ") {
		t.Errorf("it does not say what was fetched: %v", got)
	}
	plain.slipway(t, "build", "kubectl").ok(t)
	if got, want := fresh.sum(t, "_output/bin/kubectl"), plain.sum(t, "_output/bin/kubectl"); got != want {
		t.Errorf("kubectl has the SHA-256 %s, want %s", got, want)
	}
	online := fresh.with("GOPROXY=" + strings.TrimSpace(run(t, "", nil, "go", "env", "GOPROXY").ok(t).stdout)) // to look at all patches
	if got := online.slipway(t, "build", "--no-cache", "--dry-run", "kubectl").ok(t).stdout; !strings.Contains(got, "a cache had its result") {
		t.Errorf("without the cache, the plan is %s", got)
	}
}

// withoutGo returns a folder with slipway, and with what make and slipway need besides Go.
func withoutGo(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range []string{"make", "git", "sh", "sed", "mkdir", "env", "mktemp", "rm", "cp", "mv", "cksum", "find", "sort", "cat"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(slipway(t), filepath.Join(bin, "slipway")); err != nil {
		t.Fatal(err)
	}
	return bin
}
