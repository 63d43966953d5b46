package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/tree/input"
)

// packed writes a kubernetes-inputs.tar of a version into a folder.
func packed(t *testing.T, dir, version string) (file string) {
	t.Helper()
	text := fmt.Sprintf("KUBE_GIT_VERSION='%s'\nKUBE_GIT_COMMIT='0123456'\nKUBE_GIT_TREE_STATE='clean'\n", version)
	sums := fmt.Sprintf("%x  README.md\n%x  version\n", sha256.Sum256([]byte("read me")), sha256.Sum256([]byte(text)))
	file = filepath.Join(dir, input.Tarball)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Tar(f, []archive.Entry{
		{Name: "README.md", Mode: 0o644, Data: []byte("read me")}, {Name: "version", Mode: 0o644, Data: []byte(text)},
		{Name: input.Sums, Mode: 0o644, Data: []byte(sums)},
	}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInputsBesideARelease(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]File{
		"v1.37.0": {input.Tarball, OK, ""},
		"v1.37.1": {input.Tarball, Stranger, "its version is v1.37.1"},
	} {
		dir := made(t)
		packed(t, dir, version)
		report, err := Folder(t.Context(), dir, Want{})
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Files[1]; got != want || report.OK() != (want.Status == OK) {
			t.Errorf("%s: %+v, OK %v", version, got, report.OK())
		}
	}
}

func TestInputsAreCheckedByThemselves(t *testing.T) {
	t.Parallel()
	file := packed(t, t.TempDir(), "v1.37.0")
	report, err := Inputs(t.Context(), file)
	if err != nil || !report.OK() || report.Version != "v1.37.0" || report.Commit != "0123456" {
		t.Fatalf("%+v, error %v", report, err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]File{
		strings.Replace(string(whole), "read me", "read it", 1): {input.Tarball, Changed, "README.md has changed: its SHA-256 is "},
		string(whole[:1000]): {input.Tarball, Short, "before _inputs/SHA256SUMS"},
		"no tarball":         {input.Tarball, Short, "before its first member"},
	} {
		write(t, filepath.Dir(file), input.Tarball, text)
		report, err := Inputs(t.Context(), file)
		if err != nil || report.OK() || report.Files[0].Status != want.Status || !strings.Contains(report.Files[0].Detail, want.Detail) {
			t.Errorf("%+v, error %v, want %+v", report, err, want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o755); err != nil { // it opens, and cannot be read
		t.Fatal(err)
	}
	var unreadable *fs.PathError
	if _, err := Inputs(t.Context(), file); !errors.As(err, &unreadable) {
		t.Errorf("error %v, want that of the file system", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inputs(canceled, file); err == nil {
		t.Error("a canceled check succeeds")
	}
}
