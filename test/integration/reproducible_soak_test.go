//go:build integration && soak

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newerGo is installed where the pinned Go is not. It must fetch the pinned one.
const newerGo = "go1.27.1"

func TestReleaseWithoutAnyCacheAndWithANewerGoIsTheSame(t *testing.T) {
	need(t, "faketime", "faketime")
	need(t, "unshare", "util-linux")
	r := baseline(t)
	bin := filepath.Join(strings.TrimSpace(run(t, workspace, []string{"GOTOOLCHAIN=" + newerGo}, "go", "env", "GOROOT").ok(t).stdout), "bin")
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	if got := run(t, workspace, []string{path, "GOTOOLCHAIN=local"}, filepath.Join(bin, "go"),
		"version").ok(t).stdout; !strings.Contains(got, newerGo) {
		t.Fatalf("the newer Go is %q", got)
	}
	odd := oddClone(t)
	oddRelease(t, odd, path, "GOROOT=", "GOTOOLCHAIN=local", "GOCACHE="+t.TempDir(), "GOMODCACHE="+emptyModCache(t),
		// This machine decides where modules come from.
		"GOPROXY="+goEnv(t, "GOPROXY"), "GOSUMDB="+goEnv(t, "GOSUMDB"))
	r.sameRelease(t, odd)

	// A slipway that was compiled by it, with other flags, has the same keys.
	other := filepath.Join(t.TempDir(), "slipway")
	run(t, r.dir, []string{path, "GOTOOLCHAIN=local", "GOFLAGS="}, "go", "build", "-o", other, ".").ok(t)
	if got := run(t, r.dir, nil, other, "release", "--quick", "--dry-run").ok(t).stdout; !strings.HasPrefix(got, "0 of ") {
		t.Errorf("a slipway by %s would make something again: %s", newerGo, got)
	}
}

// emptyModCache returns an empty folder for a module cache. make fills it without -modcacherw, so its files are read-only, and only
// the go command can remove it.
func emptyModCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { run(t, workspace, []string{"GOMODCACHE=" + dir}, "go", "clean", "-modcache").ok(t) })
	return dir
}
