package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"slipway.build/pkg/mechanism/atomicfile"
)

// checkFile checks a file's content and permissions, and that the folder holds nothing else.
func checkFile(t *testing.T, name, want string, perm fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != perm {
		t.Errorf("mode %v, want %v", info.Mode(), perm)
	}
	checkFolder(t, filepath.Dir(name), 1)
}

func checkFolder(t *testing.T, dir string, want int) {
	t.Helper()
	if list, err := os.ReadDir(dir); err != nil || len(list) != want {
		t.Errorf("%v, %v in the folder; want %d files", list, err, want)
	}
}

func TestFileAppearsWhenItIsWhole(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	for _, old := range []string{"", "old"} {
		if old != "" {
			if err := os.WriteFile(name, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := atomicfile.Write(name, 0o644, func(w io.Writer) error {
			_, err := io.WriteString(w, "half")
			if data, _ := os.ReadFile(name); string(data) != old {
				t.Errorf("%q is visible, want %q", data, old)
			}
			_, more := io.WriteString(w, " and half")
			return errors.Join(err, more)
		})
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, name, "half and half", 0o644)
	}
}

func TestFailureKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "f")
	failed := errors.New("failed")
	fill := func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		return failed
	}
	if err := atomicfile.Write(name, 0o644, fill); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	checkFolder(t, filepath.Dir(name), 0)
	if err := atomicfile.WriteFile(name, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(name, 0o644, fill); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	checkFile(t, name, "old", 0o640)
	if err := atomicfile.Copy(filepath.Join(filepath.Dir(name), "none"), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("copy of a file that does not exist: %v", err)
	}
	checkFile(t, name, "old", 0o640)
}

func TestFileThatCannotBeReplacedLeavesNoTemporaryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(name, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(name, []byte("x"), 0o644); err == nil {
		t.Error("a folder was replaced by a file")
	}
	checkFolder(t, dir, 1)
}

func TestTemporaryFolder(t *testing.T) {
	t.Parallel()
	name, tmp := filepath.Join(t.TempDir(), "f"), t.TempDir()
	err := atomicfile.WriteVia(tmp, name, 0o755, func(w io.Writer) error {
		checkFolder(t, filepath.Dir(name), 0)
		checkFolder(t, tmp, 1)
		_, err := io.WriteString(w, "x")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, name, "x", 0o755)
	checkFolder(t, tmp, 0)
}

func TestCopyKeepsPermissions(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := atomicfile.WriteFile(from, []byte("x"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Copy(from, to); err != nil {
		t.Fatal(err)
	}
	checkFile(t, to, "x", 0o750)
}

func TestSweepRemovesWhatKilledWritersLeave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{".file.123456.tmp", ".file", "file.1.tmp", ".file.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(atomicfile.Sweep(dir), atomicfile.Sweep(filepath.Join(dir, "none"))); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 {
		t.Errorf("there are %v", entries)
	}
}
