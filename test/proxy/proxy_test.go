package proxy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/test/proxy"
)

// The go command finds both versions, and in each exactly what package main needs. Folders with a go.mod of their own are no part of it.
func TestGoCommandReadsModule(t *testing.T) {
	t.Parallel()
	dir, user := t.TempDir(), t.TempDir()
	for _, version := range []string{"v0.2.0", "v0.3.0-rc.1", "v0.2.0"} {
		if err := proxy.Write(dir, filepath.Join("..", ".."), version); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = user
		cmd.Env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(dir), "GONOSUMDB="+proxy.Path, "GOFLAGS=-modcacherw",
			"GOMODCACHE="+filepath.Join(user, "cache"), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("mod", "init", "acme.example/tools")
	if got, want := run("list", "-m", "-versions", proxy.Path), proxy.Path+" v0.2.0 v0.3.0-rc.1"; got != want {
		t.Errorf("versions: %q, want %q", got, want)
	}
	at := run("mod", "download", "-json", proxy.Path+"@v0.2.0")
	if !strings.Contains(at, `"Sum": "h1:`) {
		t.Errorf("no sum in %s", at)
	}
	for name, want := range map[string]bool{"main.go": true, "pkg/cli/cli.go": true, "cmd/go.mod": false} {
		_, err := os.Stat(filepath.Join(user, "cache", proxy.Path+"@v0.2.0", name))
		if (err == nil) != want {
			t.Errorf("the module has %s: %v, want %v", name, err == nil, want)
		}
	}
}
