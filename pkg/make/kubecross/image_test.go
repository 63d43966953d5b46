package kubecross

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/engine"
	"slipway.build/pkg/tree/catalog"
)

var (
	amd64 = catalog.Platform{OS: "linux", Arch: "amd64"}
	arm64 = catalog.Platform{OS: "linux", Arch: "arm64"}
	owner = engine.Owner{ID: "0123456789ab", Folder: "/src/kubernetes"}
)

// definition is a small build image.
func definition(t *testing.T) Image {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Dockerfile"), "FROM scratch\n", 0o644)
	write(t, filepath.Join(dir, "packages.txt"), "git\n", 0o644)
	write(t, filepath.Join(dir, "rootfs", "bin", "attended"), "#!/bin/sh\n", 0o755)
	return Image{Dir: dir, Pin: toolchain.Pin{Version: "go1.99.1", Sums: map[string]string{"linux-amd64": "h1:a=", "linux-arm64": "h1:b="}}}
}

func write(t *testing.T, name, data string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), mode); err != nil {
		t.Fatal(err)
	}
}

func TestImageIsNamedByOwnerAndContent(t *testing.T) {
	t.Parallel()
	name, err := definition(t).Ref(owner, amd64)
	if err != nil {
		t.Fatal(err)
	}
	tag, ok := strings.CutPrefix(name, "slipway/kube-cross:0123456789ab-")
	if !ok || len(tag) != 12 {
		t.Errorf("its name is %s", name)
	}
	again, err := definition(t).Ref(owner, amd64) // in another folder
	if err != nil || again != name {
		t.Errorf("elsewhere its name is %s (%v), here %s", again, err, name)
	}
}

func TestEveryInputOfTheImageChangesItsName(t *testing.T) {
	t.Parallel()
	before, err := definition(t).Ref(owner, amd64)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{before: "nothing"}
	for what, change := range map[string]func(i *Image) catalog.Platform{
		"the content of a file": func(i *Image) catalog.Platform {
			write(t, filepath.Join(i.Dir, "packages.txt"), "got\n", 0o644)
			return amd64
		},
		"the name of a file": func(i *Image) catalog.Platform {
			if err := os.Rename(filepath.Join(i.Dir, "packages.txt"), filepath.Join(i.Dir, "packages")); err != nil {
				t.Fatal(err)
			}
			return amd64
		},
		"one more file": func(i *Image) catalog.Platform {
			write(t, filepath.Join(i.Dir, "rootfs", "etc", "motd"), "", 0o644)
			return amd64
		},
		"the mode of a file": func(i *Image) catalog.Platform {
			if err := os.Chmod(filepath.Join(i.Dir, "rootfs", "bin", "attended"), 0o644); err != nil {
				t.Fatal(err)
			}
			return amd64
		},
		"the base":           func(i *Image) catalog.Platform { i.Base = "debian:sid"; return amd64 },
		"the Go version":     func(i *Image) catalog.Platform { i.Pin.Version = "go1.99.2"; return amd64 },
		"the sum of Go":      func(i *Image) catalog.Platform { i.Pin.Sums["linux-amd64"] = "h1:c="; return amd64 },
		"the platform":       func(*Image) catalog.Platform { return arm64 },
		"a text's place":     func(i *Image) catalog.Platform { i.Base, i.Pin.Version = "go1.99.1", ""; return amd64 },
		"platform and sum":   func(i *Image) catalog.Platform { i.Pin.Sums["linux-arm64"] = "h1:a="; return arm64 },
		"sum and base alike": func(i *Image) catalog.Platform { i.Base, i.Pin.Sums["linux-amd64"] = "h1:a=", "h1:b="; return amd64 },
	} {
		i := definition(t)
		platform := change(&i)
		name, err := i.Ref(owner, platform)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%s changed, and the name is %s, as with %s", what, name, other)
		}
		seen[name] = what
	}
}

func TestOtherSettingsLeaveTheImageItsName(t *testing.T) {
	t.Parallel()
	before, err := definition(t).Ref(owner, amd64)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(i *Image){
		"the mirror":              func(i *Image) { i.Mirror = "http://debian.example.com" },
		"another platform's Go":   func(i *Image) { i.Pin.Sums["linux-arm64"] = "h1:c=" },
		"modes beyond executable": func(i *Image) { _ = os.Chmod(filepath.Join(i.Dir, "packages.txt"), 0o600) },
	} {
		i := definition(t)
		i.Pin.Sums = maps.Clone(i.Pin.Sums)
		change(&i)
		if name, err := i.Ref(owner, amd64); err != nil || name != before {
			t.Errorf("%s changed, and the name is %s (%v), not %s", what, name, err, before)
		}
	}
}

func TestInvalidDefinitionIsAnError(t *testing.T) {
	t.Parallel()
	i := definition(t)
	_, err := i.Ref(owner, catalog.Platform{OS: "linux", Arch: "s390x"})
	if err == nil || !strings.Contains(err.Error(), "release.yaml has no sum of go1.99.1 for linux-s390x: add it") {
		t.Errorf("error %v for a platform without a sum", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(i.Dir, "rootfs", "link")); err != nil {
		t.Skip(err)
	}
	if _, err := i.Ref(owner, amd64); err == nil || !strings.Contains(err.Error(), "link: not a regular file") {
		t.Errorf("error %v for a link", err)
	}
	i.Dir = filepath.Join(i.Dir, "nowhere")
	if _, err := i.Ref(owner, amd64); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error %v without a folder", err)
	}
}

func TestTagsOfAnOwner(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"slipway/kube-cross:0123456789ab-0123456789ab":         true,
		"slipway/kube-cross:ba9876543210-0123456789ab":         false,
		"slipway/kube-cross:dev":                               false,
		"slipway/kube-cross-base:0123456789ab-0123456789ab":    false,
		"example.com/slipway/kube-cross:0123456789ab-01234567": false,
	} {
		if got := tagged(name, Repository, owner.ID); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPackagesOfAnArchitecture(t *testing.T) {
	t.Parallel()
	const text = "# What is needed.\n\ngit\n  make # to build\ng++-12\ngcc-aarch64-linux-gnu [!arm64]\ngcc-x86-64-linux-gnu\t[!amd64]\n" +
		"libc6-i386 [amd64]\n"
	for arch, want := range map[string][]string{
		"amd64": {"git", "make", "g++-12", "gcc-aarch64-linux-gnu", "libc6-i386"},
		"arm64": {"git", "make", "g++-12", "gcc-x86-64-linux-gnu"},
	} {
		got, err := (folder{{name: "packages.txt", data: []byte(text)}}).packages(arch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arch, diff)
		}
	}
}

func TestInvalidPackageLineIsNamed(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"two words", "gcc [arm]", "gcc[!arm64]", "gcc [!arm64", "-y", "git;reboot"} {
		_, err := (folder{{name: "packages.txt", data: []byte("git\n" + line + "\n")}}).packages("amd64")
		if err == nil || !strings.Contains(err.Error(), "packages.txt:2: ") {
			t.Errorf("%q: error %v", line, err)
		}
	}
}

// On both kinds of engines the image has a compiler for each server platform.
func TestRealPackages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "images", "kube-cross", "packages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string][]string{
		"amd64": {"gcc", "gcc-aarch64-linux-gnu", "gcc-s390x-linux-gnu", "gcc-powerpc64le-linux-gnu"},
		"arm64": {"gcc", "gcc-x86-64-linux-gnu", "gcc-s390x-linux-gnu", "gcc-powerpc64le-linux-gnu"},
	} {
		got, err := (folder{{name: "packages.txt", data: text}}).packages(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(want, "git", "make", "rsync") {
			if !slices.Contains(got, name) {
				t.Errorf("%s: no %s among %q", arch, name, got)
			}
		}
	}
}
