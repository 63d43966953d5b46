//go:build integration && soak

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newerGo is installed where the pinned one is not: it must fetch that, and not be used itself.
const newerGo = "go1.27.1"

func TestReleaseWithoutAnyCacheAndWithANewerGoIsTheSame(t *testing.T) {
	need(t, "faketime", "faketime")
	need(t, "unshare", "util-linux")
	r := baseline(t)
	bin := filepath.Join(strings.TrimSpace(run(t, workspace, []string{"GOTOOLCHAIN=" + newerGo}, "go", "env", "GOROOT").ok(t).stdout), "bin")
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	if got := run(t, workspace, []string{path, "GOTOOLCHAIN=local"}, filepath.Join(bin, "go"), "version").ok(t).stdout; !strings.Contains(got, newerGo) {
		t.Fatalf("the newer Go is %q", got)
	}
	odd := oddClone(t)
	oddRelease(t, odd, path, "GOROOT=", "GOTOOLCHAIN=local", "GOCACHE="+t.TempDir(), "GOMODCACHE="+emptyModCache(t),
		// Where modules come from is the one setting that this machine's owner has made.
		"GOPROXY="+goEnv(t, "GOPROXY"), "GOSUMDB="+goEnv(t, "GOSUMDB"))
	r.sameRelease(t, odd)
}

// emptyModCache is a module cache as a newcomer has it. What will be in it is read-only, as make fills it with flags of its
// own, without -modcacherw: so the go command has to remove it, which can.
func emptyModCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { run(t, workspace, []string{"GOMODCACHE=" + dir}, "go", "clean", "-modcache").ok(t) })
	return dir
}
