//go:build integration && linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// needBazel is called by tests that run Bazel. It must be installed, or the tools that make a root that has it. It joins their lane.
func needBazel(t *testing.T) {
	t.Helper()
	if !slices.ContainsFunc([]string{"bazel", "bazelisk"}, func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		need(t, "mmdebstrap", "mmdebstrap")
		need(t, "unshare", "util-linux")
	}
	lateLane.join(t)
}

// The smallest component is enough for this.
func TestBazelBuildsWhatIsPinned(t *testing.T) {
	tr := bazelTree(t)
	build := func(more ...string) result {
		return tr.bazel(t, slices.Concat([]string{"build", smallComponent}, asReleased, more)...)
	}

	// Sums are checked before anything is compiled: those of the rules, and of the components' modules.
	for file, module := range map[string]string{
		"go.sum":                           "github.com/bazelbuild/rules_go v",
		"build/bazel/generated/config.bzl": `"github.com/fxamacker/cbor/v2": struct(`,
	} {
		text := tr.read(t, file)
		before, after, ok := strings.Cut(text, module)
		if !ok {
			t.Fatalf("%s does not have %s", file, module)
		}
		version, sum, _ := strings.Cut(after, "h1:")
		tr.write(t, file, before+module+version+"h1:AAAA"+sum[4:])
		build("--nobuild").fails(t, 1, "h1:AAAA")
		tr.write(t, file, text)
	}

	build().ok(t)
	if again := build().ok(t); !strings.Contains(again.stderr, "1 process: 1 internal") {
		t.Errorf("a second build has something to do: %v", again)
	}
	tr.slipway(t, "build", "kube-log-runner").ok(t)
	local := filepath.Join(tr.dir, "_output", "local", "bin", runtime.GOOS, runtime.GOARCH, "kube-log-runner")
	made := tr.made(t, smallComponent, asReleased...)
	sameBytes(t, local, made)
	if out := run(t, tr.dir, nil, made, "/bin/echo", "it runs").ok(t).stdout; out != "it runs\n" {
		t.Errorf("it says %q", out)
	}
}

// Bazel's folders are outside of the tree, and belong to it nevertheless.
func TestCleanRemovesBazelsFolders(t *testing.T) {
	needBazel(t)
	tr := clone(t)
	base := strings.TrimSpace(tr.bazel(t, "info", "output_base").ok(t).stdout)
	if made, err := os.ReadDir(base); len(made) == 0 {
		t.Fatalf("there is nothing in %s to remove: %v", base, err)
	}
	tr.slipway(t, "clean").ok(t)
	if left, err := os.ReadDir(base); len(left) > 0 {
		t.Errorf("clean left %s: %v, %v", base, left, err)
	}
}
