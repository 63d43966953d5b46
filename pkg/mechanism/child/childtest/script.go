// Package childtest writes programs for tests, in the place of those that the tested code runs.
//
// What must never be in here: what these programs do.
package childtest

import (
	"os"
	"testing"

	"slipway.build/pkg/mechanism/child"
)

// Script writes an executable script, which can be run at once, also while parallel tests start programs. The test fails, and goes
// on, if it cannot be written.
func Script(t testing.TB, file, text string) {
	t.Helper()
	if err := child.WithoutStarts(func() error { return os.WriteFile(file, []byte(text), 0o755) }); err != nil {
		t.Error(err)
	}
}
