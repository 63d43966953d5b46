package patched

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFoldersOfKilledRunsAreRemoved(t *testing.T) {
	t.Parallel()
	cache, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{"slipway-old": 25 * time.Hour, "slipway-new": time.Hour, "download": 1000 * time.Hour} {
		dir := filepath.Join(cache, name)
		if err := os.MkdirAll(filepath.Join(dir, "code"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []string{filepath.Join(dir, "code"), dir} {
			if err := os.Chmod(readOnly, 0o555); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = writable(dir) })
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(cache, now)
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"download", "slipway-new"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
