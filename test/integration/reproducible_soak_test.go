//go:build integration && soak

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newerGo is installed where the pinned one is not: it must fetch that, and not be used itself.
const newerGo = "golang.org/toolchain@v0.0.1-go1.27.1.linux-amd64"

func TestReleaseWithoutAnyCacheAndWithANewerGoIsTheSame(t *testing.T) {
	need(t, "faketime", "faketime")
	r := baseline(t)
	root := strings.TrimSpace(run(t, workspace, []string{"GOFLAGS=", "GOSUMDB=off"}, "go", "mod", "download", "-json", newerGo).ok(t).stdout)
	_, dir, _ := strings.Cut(root, `"Dir": "`)
	dir, _, _ = strings.Cut(dir, `"`)
	bin := filepath.Join(dir, "bin")
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	if got := run(t, workspace, []string{path, "GOTOOLCHAIN=local"}, filepath.Join(bin, "go"), "version").ok(t).stdout; !strings.Contains(got, "go1.27.1") {
		t.Fatalf("the newer Go is %q", got)
	}
	odd := oddClone(t)
	oddRelease(t, odd, path, "GOROOT=", "GOTOOLCHAIN=local", "GOCACHE="+t.TempDir())
	r.sameRelease(t, odd)
}
