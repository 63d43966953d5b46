//go:build integration && soak

package integration

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each makes a release of all that is released for a platform, with the test set.
func TestReleaseForLinuxAMD64(t *testing.T)   { releaseFor(t, "linux/amd64") }
func TestReleaseForLinuxARM64(t *testing.T)   { releaseFor(t, "linux/arm64") }
func TestReleaseForLinuxPPC64LE(t *testing.T) { releaseFor(t, "linux/ppc64le") }
func TestReleaseForLinuxS390X(t *testing.T)   { releaseFor(t, "linux/s390x") }
func TestReleaseForLinux386(t *testing.T)     { releaseFor(t, "linux/386") }
func TestReleaseForLinuxARM(t *testing.T)     { releaseFor(t, "linux/arm") }
func TestReleaseForDarwinAMD64(t *testing.T)  { releaseFor(t, "darwin/amd64") }
func TestReleaseForDarwinARM64(t *testing.T)  { releaseFor(t, "darwin/arm64") }
func TestReleaseForWindowsAMD64(t *testing.T) { releaseFor(t, "windows/amd64") }
func TestReleaseForWindowsARM64(t *testing.T) { releaseFor(t, "windows/arm64") }
func TestReleaseForWindows386(t *testing.T)   { releaseFor(t, "windows/386") }

// releaseFor makes a release for one platform, verifies it, and looks at the programs that are for it.
func releaseFor(t *testing.T, platform string) {
	tr := clone(t)
	released := tr.slipway(t, "release", "--platform", platform).ok(t)
	t.Logf("took %v", released.took)
	tr.slipway(t, "verify", "_output/release-tars").ok(t)
	programs, err := filepath.Glob(tr.path(binaries + "/" + platform + "/*"))
	if err != nil || len(programs) < 2 {
		t.Fatalf("programs %v, %v", programs, err)
	}
	opened := map[string]func(*os.File) error{
		"linux":   func(f *os.File) error { _, err := elf.NewFile(f); return err },
		"darwin":  func(f *os.File) error { _, err := macho.NewFile(f); return err },
		"windows": func(f *os.File) error { _, err := pe.NewFile(f); return err },
	}
	system, arch, _ := strings.Cut(platform, "/")
	for _, name := range programs {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := opened[system](f); err != nil {
			t.Errorf("%s is no program for %s: %v", filepath.Base(name), system, err)
		}
		f.Close()
		info := run(t, tr.dir, nil, "go", "version", "-m", name).ok(t).stdout
		if !strings.Contains(info, "GOARCH="+arch+"\n") {
			t.Errorf("%s is not for %s:\n%s", filepath.Base(name), arch, info)
		}
	}
}
