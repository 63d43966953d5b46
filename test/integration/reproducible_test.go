//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Everything about this clone differs: its depth, its folder, its files' permissions, the clock, the language, the time zone, and
// the user's settings of Go. Every compile has the same key there, so the shared release's binaries are accepted; the soak test
// compiles here, too.
func TestOddCloneOnAnOddMachineMakesTheSameRelease(t *testing.T) {
	cloneLane.join(t)
	need(t, "faketime", "faketime")
	need(t, "unshare", "util-linux")
	r := baseline(t)
	odd := oddClone(t, "--depth=1")
	if n := run(t, odd.dir, nil, "git", "rev-list", "--count", "HEAD").ok(t).stdout; n != "1\n" {
		t.Fatalf("the clone is not shallow: it has %s commits", n)
	}
	if got := odd.slipway(t, "version").ok(t).stdout; got != r.version+"\n" {
		t.Errorf("the version in a shallow clone is %q, want %s", got, r.version)
	}
	if !soak {
		r.giveBinaries(t, odd)
	}
	oddRelease(t, odd)
	r.sameRelease(t, odd)
	r.sameKeys(t, odd)
}

// sameKeys requires that actions have the same keys in another tree, so that a shared cache has their results.
func (r release) sameKeys(t *testing.T, other tree) {
	t.Helper()
	keys := r.keys(t)
	for id, key := range other.keys(t) {
		if keys[id] != key {
			t.Errorf("the key of %q is %s, want %s", id, key, keys[id])
		}
	}
}

// keys returns the keys of the actions that a tree has results of.
func (tr tree) keys(t *testing.T) map[string]string {
	t.Helper()
	records, err := filepath.Glob(tr.path("_output/.slipway/actions/*.json"))
	if err != nil || len(records) < 50 {
		t.Fatalf("%d records of actions, %v", len(records), err)
	}
	keys := map[string]string{}
	for _, name := range records {
		var record struct{ ID, Key string }
		if err := json.Unmarshal([]byte(readFile(name)), &record); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		keys[record.ID] = record.Key
	}
	return keys
}

// oddClone makes a clone that only its owner can read, in a folder with a space, with a git that is configured to convert line
// endings.
func oddClone(t *testing.T, flags ...string) tree {
	t.Helper()
	src, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a folder, with 'marks'")
	args := append([]string{"-c", `umask 077; exec git -c core.autocrlf=true clone -q -c core.autocrlf=true "$@"`, "sh"},
		append(flags, "file://"+src.dir, dir)...)
	run(t, workspace, nil, "sh", args...).ok(t)
	odd := tree{dir: dir}
	if strings.Contains(odd.read(t, "cmd/go.mod"), "\r") {
		t.Error("git converted line endings")
	}
	return odd
}

// oddRelease makes a quick release with settings that must make no difference.
func oddRelease(t *testing.T, odd tree, env ...string) {
	t.Helper()
	home := t.TempDir()
	settings := filepath.Join(home, ".config", "go")
	if err := os.MkdirAll(settings, 0o755); err != nil {
		t.Fatal(err)
	}
	junk := "GOFLAGS=-tags=other -gcflags=-N\nGOAMD64=v3\nGOARM64=v9.0\nCGO_ENABLED=1\nGOEXPERIMENT=jsonv2\n"
	if err := os.WriteFile(filepath.Join(settings, "env"), []byte(junk), 0o644); err != nil {
		t.Fatal(err)
	}
	odd = odd.with(
		"HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"),
		"GOAMD64=v3", "GOEXPERIMENT=jsonv2", "GODEBUG=http2server=0", "GOOS=darwin", "CGO_ENABLED=1", "GOWORK="+filepath.Join(home, "no.work"),
		"TZ=Asia/Kathmandu", "LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8", "USER=someone", "TMPDIR="+t.TempDir(),
	).with(env...)
	// In a user namespace this user is another one without privileges, who still owns the caches.
	other := "unshare --user --map-user=12345 --map-group=12345"
	if got := run(t, odd.dir, nil, "sh", "-c", "exec "+other+" id -u").ok(t).stdout; got != "12345\n" {
		t.Fatalf("the other user is %q", got)
	}
	run(t, odd.dir, odd.env, "sh", "-c", "umask 077; exec "+other+" faketime -f +1h make "+quick).ok(t)
}

// In the unpacked sources every compile has the key that it has in the repository: compiled binaries of the shared release are
// accepted, and none would be compiled again. The soak test makes the release.
func TestReleaseFromTheSourceTarballIsTheSame(t *testing.T) {
	cloneLane.join(t)
	r := baseline(t)
	unpacked := r.unpackSources(t)
	if got := unpacked.slipway(t, "version").ok(t).stdout; got != r.version+"\n" {
		t.Errorf("the version of the unpacked sources is %q, want %s", got, r.version)
	}
	if soak {
		unpacked.slipway(t, quickRelease...).ok(t)
		r.sameRelease(t, unpacked)
		return
	}
	r.giveBinaries(t, unpacked)
	plan := unpacked.slipway(t, "release", "--quick", "--dry-run").ok(t)
	if !strings.Contains(plan.stdout, "package kubernetes-server-"+host+".tar.gz: ") || strings.Contains(plan.stdout, "compile linux/") {
		t.Errorf("the plan is not to pack what was compiled: %v", plan)
	}
}

// giveBinaries copies what the release has compiled, and how it was made, into a tree without _output.
func (r release) giveBinaries(t *testing.T, to tree) {
	t.Helper()
	if err := os.Mkdir(to.path("_output"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, r.path("_output"), nil, "cp", "--archive", "--parents", "local", ".slipway/actions", "release-stage/patched",
		to.path("_output")).ok(t)
}

// unpackSources unpacks kubernetes-src.tar.gz, which is a tree without git.
func (r release) unpackSources(t *testing.T) tree {
	t.Helper()
	unpacked := tree{dir: t.TempDir()}
	run(t, unpacked.dir, nil, "tar", "-xzf", r.path(tars+"/kubernetes-src.tar.gz")).ok(t)
	return unpacked
}
