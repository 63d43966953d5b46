//go:build integration && soak && linux

package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// bazelTars is the folder of the release that `make bazel-release` makes.
const bazelTars = "_output/bazel/release-tars"

// The release that Bazel makes is the one that ROAD=bazel and the local road make of the same tree, byte by byte. Later builds make only
// what has changed.
func TestBazelReleaseIsTheBazelRoadsRelease(t *testing.T) {
	tr := bazelTree(t)
	out := tr.make(t, "bazel-release").ok(t)
	for _, name := range []string{"SHA256SUMS", "SHA512SUMS", "release.json", "kubernetes-src.tar.gz"} {
		if !strings.Contains(out.stdout, bazelTars+"/"+name+"\n") {
			t.Errorf("it does not list %s:\n%s", name, out.stdout)
		}
	}
	for _, by := range []string{"bazel", "local"} {
		tr.with("ROAD="+by).make(t, quick).ok(t)
		for _, name := range []string{"SHA256SUMS", "SHA512SUMS", "release.json"} {
			if got, want := tr.read(t, bazelTars+"/"+name), tr.read(t, tars+"/"+name); got != want {
				t.Errorf("%s is\n%sand by ROAD=%s\n%s", name, got, by, want)
			}
		}
	}
	tr.slipway(t, "verify", bazelTars).ok(t)

	build := func(more ...string) result {
		return tr.bazel(t, append([]string{"build", "--config=release", "//release:release-tars"}, more...)...).ok(t)
	}
	t.Run("no-op", func(t *testing.T) {
		if again := build(); !strings.Contains(again.stderr, "1 process: 1 internal") {
			t.Errorf("a second build has something to do: %v", again)
		}
	})
	t.Run("no stamp, no release", func(t *testing.T) {
		tr.bazel(t, "build", "//release:release-tars").fails(t, 1, "build it with --config=release")
	})

	// The tree is dirty already, so the next edit does not change the version, and nothing is compiled or linked.
	tr.append(t, "docs/bazel-road.md", "\nFirst.\n")
	build()
	first := tr.releaseSums(t)
	tr.append(t, "docs/bazel-road.md", "\nSecond.\n")
	again := build("--subcommands")
	for _, line := range regexp.MustCompile(`(?m)^SUBCOMMAND: .*mnemonic: (\w+)`).FindAllStringSubmatch(again.stderr, -1) {
		if name := line[1]; name != "ReleaseSources" && name != "Release" && name != "WorkspaceStatus" {
			t.Errorf("an edit of a document runs %s", name)
		}
	}
	if !strings.Contains(again.stderr, "mnemonic: Release") || tr.releaseSums(t) == first {
		t.Errorf("an edit of a document does not change the release: %v", again)
	}
}

// releaseSums returns the checksums of the release that Bazel made last.
func (tr tree) releaseSums(t *testing.T) string {
	t.Helper()
	sums, err := os.ReadFile(tr.path("bazel-bin/release/release-tars/SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(sums)
}
