package exchange

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestNamesAreSwapped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for name, text := range map[string]string{a: "was a", b: "was b"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	err := Names(a, b)
	if errors.Is(err, errors.ErrUnsupported) {
		if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
			t.Skipf("the file system of %s cannot swap names: %v", dir, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{a: "was b", b: "was a"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
	if err := Names(a, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("with a file that is not there: %v", err)
	}
	if got, err := os.ReadFile(a); err != nil || string(got) != "was b" {
		t.Errorf("after that, it holds %q, %v", got, err)
	}
}
