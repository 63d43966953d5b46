package debian

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"slipway.build/pkg/mechanism/recipe/recipetest"
)

func TestEveryFieldIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
	recipetest.EachField(t, CopyrightSpec{})
}

func TestLockWithoutThePlatformIsOutOfDate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	lock := Lock{Suite: "trixie", Packages: []Package{{Arch: "amd64", Name: "iptables", Version: "1", Size: 1,
		SHA256: "0000000000000000000000000000000000000000000000000000000000000000", Path: "pool/a.deb"}}}
	if err := os.WriteFile(filepath.Join(root, LockFile), lock.Marshal("a test"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Arch: "amd64", Dir: "."}
	if got, err := spec.lock(root); err != nil || len(got.Packages) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	spec.Arch = "arm64"
	if _, err := spec.lock(root); !errors.Is(err, ErrLock) {
		t.Errorf("error %v", err)
	}
}
