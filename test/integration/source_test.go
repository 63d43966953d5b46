//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// inputs makes kubernetes-inputs.tar of a tree, for this machine's platform, and returns its path.
func (tr tree) inputs(t *testing.T) string {
	t.Helper()
	tr.make(t, "source", "SOURCE_FLAGS=--host linux/"+hostArch+" --platform linux/"+hostArch).ok(t)
	return tr.path(tars + "/kubernetes-inputs.tar")
}

// offline returns the tree as on a machine that has nothing of the modules and packages, and runs its commands without a network. What was
// compiled here is there, too, since a compile of Kubernetes from nothing takes too long; it is known by content.
func offline(t *testing.T, tr tree) tree {
	t.Helper()
	empty := t.TempDir()
	env := []string{"GOMODCACHE=" + filepath.Join(empty, "modules"), "XDG_CACHE_HOME=" + filepath.Join(empty, "cache"), "HOME=" + empty}
	cache := goEnv(t, "GOCACHE")
	if soak {
		cache = filepath.Join(empty, "compiled")
	}
	return tr.with(append(env, "GOCACHE="+cache)...)
}

// without runs a command in a network namespace that has no network.
func (tr tree) without(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, tr.dir, tr.env, "unshare", append([]string{"--net"}, args...)...)
}

// With the inputs of a release, its programs are made again without network, with the same bytes. The soak test makes the whole release.
func TestInputsAreEnoughWithoutNetwork(t *testing.T) {
	rare(t, "it packs and unpacks two gigabytes; a script of pkg/cli does it with a small tree")
	needRoot(t)
	need(t, "unshare", "util-linux")
	cloneLane.join(t)
	r := baseline(t)
	here := clone(t) // of the same commit
	file := here.inputs(t)
	here.slipway(t, "verify", file).ok(t)

	// Neither a space nor a comma in the folder's name confuses the go command.
	again := offline(t, tree{dir: filepath.Join(t.TempDir(), "made again, elsewhere")})
	if err := os.Mkdir(again.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := again.without(t, "curl", "--max-time", "5", "http://192.0.2.1/"); got.code == 0 {
		t.Fatal("there is a network")
	}
	run(t, again.dir, nil, "tar", "-xf", file).ok(t)
	run(t, again.dir, nil, "sha256sum", "--check", "--strict", "--quiet", "_inputs/SHA256SUMS").ok(t)
	programs := []string{"kube-log-runner", "kubectl", "pause"}
	again.without(t, append([]string{slipway(t), "build"}, programs...)...).ok(t)
	for _, name := range programs {
		if got, want := again.sum(t, hostBin(name)), r.sum(t, hostBin(name)); got != want {
			t.Errorf("%s is %s, in the release %s", name, got, want)
		}
	}

	// A module that was exchanged is named.
	version := "v0" + strings.TrimPrefix(kubernetesOf(t, r.tree), "v1") // other projects have others
	zip := func(module string) string { return "_inputs/go/k8s.io/" + module + "/@v/" + version + ".zip" }
	run(t, again.dir, nil, "cp", zip("component-helpers"), zip("component-base")).ok(t)
	again.remove(t, "_output")
	offline(t, tree{dir: again.dir}).without(t, slipway(t), "build", "kube-log-runner").fails(t, 1, "k8s.io/component-base@")
}

// Whoever has the provenance of a release and its inputs makes it again, without network, and says so.
func TestReleaseIsMadeAgainWithoutNetwork(t *testing.T) {
	rare(t, "it links a whole release, of a gigabyte of modules; a script of pkg/cli makes a small one again")
	needRoot(t)
	need(t, "unshare", "util-linux")
	cloneLane.join(t)
	r := baseline(t)
	here := clone(t) // of the same commit
	file := here.inputs(t)
	here.slipway(t, "verify", file).ok(t)

	// Neither a space nor a comma in the folder's name confuses the go command.
	dir := filepath.Join(t.TempDir(), "made again, elsewhere")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	there := offline(t, tree{dir: dir}).with("COSIGN_PASSWORD=secret")
	if got := there.without(t, "curl", "--max-time", "5", "http://192.0.2.1/"); got.code == 0 {
		t.Fatal("there is a network")
	}
	there.without(t, slipway(t), "keys", "new", "mine").ok(t)
	rebuild := []string{slipway(t), "rebuild", r.path(tars), "--inputs", file, "--folder", "again"}
	there.without(t, append(rebuild, "--sign", "mine.key")...).ok(t)
	again := tree{dir: there.path("again/tree"), env: there.env}
	r.sameRelease(t, again)
	got := there.without(t, slipway(t), "verify", again.path(tars), "--rebuilders", "1", "--rebuilder-key", "mine.pub").ok(t)
	if !strings.Contains(got.stdout, ", rebuilt by the owner of 1 key\n") {
		t.Errorf("nobody has rebuilt it: %v", got)
	}
	run(t, again.dir, nil, "sha256sum", "--check", "--strict", "--quiet", "_inputs/SHA256SUMS").ok(t)
	again.without(t, "make", "source", "SOURCE_FLAGS=--host linux/"+hostArch+" --platform linux/"+hostArch).ok(t)
	if again.sum(t, tars+"/kubernetes-inputs.tar") != here.sum(t, tars+"/kubernetes-inputs.tar") {
		t.Error("kubernetes-inputs.tar, made of what was in it, is another one")
	}
	again.without(t, "make", "test").ok(t)

	// Modules that were exchanged or are missing are named before anything is built, and by a build, too.
	version := "v0" + strings.TrimPrefix(kubernetesOf(t, r.tree), "v1") // other projects have others
	zip := func(module string) string { return "_inputs/go/k8s.io/" + module + "/@v/" + version + ".zip" }
	again.remove(t, "_output/local", "_output/.slipway/links") // so that there is something to build
	run(t, again.dir, nil, "cp", zip("component-helpers"), zip("component-base")).ok(t)
	again.remove(t, zip("kubelet"))
	t.Run("before anything is built", func(t *testing.T) {
		bad := there.without(t, rebuild...).fails(t, 1, "k8s.io/component-base@"+version+" in _inputs/go differs",
			zip("kubelet")+" is missing")
		if _, err := os.Stat(again.path("_output/local")); err == nil {
			t.Errorf("something was built: %v", bad)
		}
		altered := tree{dir: t.TempDir()}
		provenance := run(t, r.path(tars), nil, "cat", "provenance.json").ok(t).stdout
		sum := regexp.MustCompile(`(golang.org/toolchain@[^"]*\.linux-amd64",\s*"digest": \{\s*"dirHash": ")[0-9a-f]{8}`)
		if !sum.MatchString(provenance) {
			t.Fatalf("no toolchain in %s", provenance)
		}
		altered.write(t, "provenance.json", sum.ReplaceAllString(provenance, "${1}00000000"))
		there.without(t, slipway(t), "rebuild", altered.dir, "--inputs", file, "--folder", "altered").fails(t, 1,
			".linux-amd64 differs in the tree: its sum is h1:")
		if _, err := os.Stat(there.path("altered/tree")); err == nil {
			t.Error("a tree with problems was kept")
		}
	})
	offline(t, tree{dir: again.dir}).without(t, slipway(t), "build", "kube-log-runner").fails(t, 1, "k8s.io/component-base@")
}
