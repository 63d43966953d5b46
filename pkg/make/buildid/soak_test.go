//go:build soak

package buildid

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/needs"
)

func TestIDsAreThoseOfTheGoCommandOnOtherPlatforms(t *testing.T) {
	t.Parallel()
	needs.Program(t, "go")
	for _, platform := range []string{"darwin/arm64", "windows/amd64", "linux/arm"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			testProgram(t, "go", platform)
		})
	}
}

// With a Go that fails this, programs have another build ID by Bazel than by the go command, and relink links them for each version. Which
// lines are new is what the test shows. A Go that is not in the list of known ones, and passes, can be added.
func TestIDsAreThoseOfTheNextGoCommand(t *testing.T) {
	t.Parallel()
	needs.Program(t, "go")
	const next = "go1.27.1"
	find := exec.CommandContext(t.Context(), "go", "env", "GOROOT")
	find.Env = append(os.Environ(), "GOTOOLCHAIN="+next, "GOROOT=")
	root, err := find.Output()
	if err != nil {
		needs.Missing(t, "%s, which comes through the module proxy: %v", next, err)
	}
	if !Known(next) {
		t.Errorf("%s is not known", next)
	}
	testProgram(t, filepath.Join(strings.TrimSpace(string(root)), "bin", "go"), runtime.GOOS+"/"+runtime.GOARCH)
}
