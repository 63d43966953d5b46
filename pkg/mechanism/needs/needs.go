// Package needs skips tests on machines that lack what they need. Where SLIPWAY_CI=1 promises that nothing is missing, it fails
// them, so that no test is skipped unnoticed.
//
// What must never be in here: what any test needs.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%v", err)
	}
	return path
}

// Missing ends a test that lacks something.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("SLIPWAY_CI") == "1" {
		t.Fatalf("needs "+format, args...)
	}
	t.Skipf("needs "+format, args...)
}
