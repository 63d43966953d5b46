package kubecross

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackagesOfAnArchitecture(t *testing.T) {
	t.Parallel()
	const text = "# What is needed.\n\ngit\n  make # to build\ng++-12\ngcc-aarch64-linux-gnu [!arm64]\ngcc-x86-64-linux-gnu\t[!amd64]\nlibc6-i386 [amd64]\n"
	for arch, want := range map[string][]string{
		"amd64": {"git", "make", "g++-12", "gcc-aarch64-linux-gnu", "libc6-i386"},
		"arm64": {"git", "make", "g++-12", "gcc-x86-64-linux-gnu"},
	} {
		got, err := packages(text, arch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arch, diff)
		}
	}
}

func TestPackageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"two words", "gcc [arm]", "gcc[!arm64]", "gcc [!arm64", "-y", "git;reboot"} {
		_, err := packages("git\n"+line+"\n", "amd64")
		if err == nil || !strings.Contains(err.Error(), "packages.txt:2: ") {
			t.Errorf("%q: error %v", line, err)
		}
	}
}

// The image has a compiler for each server platform on either kind of engine.
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
		got, err := packages(string(text), arch)
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
