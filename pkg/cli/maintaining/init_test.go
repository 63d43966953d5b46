package maintaining

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheckoutOfAProgram(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module slipway.build\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for exe, want := range map[string]string{
		filepath.Join(root, "_output", "bin", "slipway"):                            root,
		filepath.Join(root, "_output", "local", "bin", "linux", "amd64", "slipway"): root,
		filepath.Join(t.TempDir(), "bin", "slipway"):                                "",
	} {
		if got := checkoutOf(exe); got != want {
			t.Errorf("%s is in the checkout %q, want %q", exe, got, want)
		}
	}
}
