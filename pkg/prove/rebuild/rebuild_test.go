package rebuild

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

const sum = "h1:l6N77U7tjwB5L056bgrBTJIEdevac/naBZ3iSvDNfpM="

// statement writes the provenance of a small release, and returns its file.
func statement(t *testing.T) string {
	t.Helper()
	on := platform.Platform{OS: "linux", Arch: "amd64"}
	r := &release.Release{
		Format: release.Format, Version: "v1.37.1+acme.1", Commit: "0123", Go: "go1.26.8", Compiler: "go", Platforms: []platform.Platform{on},
		Sets: []string{"server", "test"}, Variables: map[string]string{"DBG": "1"},
		Artifacts: []release.Artifact{
			{Name: "a.tar.gz", Kind: release.Tarball, Path: "a.tar.gz", SHA256: strings.Repeat("a", 64), SHA512: strings.Repeat("b", 128)},
		},
		Inputs: []release.Input{
			{Kind: release.Source, Name: "kubernetes-src.tar.gz", SHA256: strings.Repeat("c", 64)},
			{Kind: release.Module, Name: "example.com/m", Version: "v1.0.0", Sum: sum},
		},
	}
	made, err := provenance.Of(r, []byte("description"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), provenance.File)
	if err := os.WriteFile(file, made[0].Content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReleaseIsMadeWithItsParametersAlone(t *testing.T) {
	t.Parallel()
	s, err := Open(statement(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	tree := &Tree{Statement: s, Dir: "/x/tree"}
	got := tree.environment([]string{"PATH=/bin", "GOFLAGS=-tags=x", "DBG=2", "KUBE_GIT_VERSION=v9", "GOPROXY=file:///p",
		"MAKEFLAGS=-n", "GIT_DIR=/y"})
	if want := []string{"PATH=/bin", "GOPROXY=file:///p", "GIT_CEILING_DIRECTORIES=/x", "KUBE_RELEASE_RUN_TESTS=n"}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	want := []string{"_output/bin/slipway", "release", "--road=local", "--platform=linux/amd64", "--test-set=true", "--inputs=false"}
	if got := tree.Commands()[1]; !slices.Equal(got, want) {
		t.Errorf("commands %q, want %q", got, want)
	}
}

func TestNothingOfOthersIsRemoved(t *testing.T) {
	t.Parallel()
	s, err := Open(statement(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	inputs := filepath.Join(t.TempDir(), "inputs.tar")
	if err := os.WriteFile(inputs, []byte("no tarball"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, "tree", "mine")
	if err := os.MkdirAll(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), s, dir, inputs, ""); err == nil || !strings.Contains(err.Error(), "is not empty: name another folder") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	// An interrupted rebuild goes on in its folder.
	dir = t.TempDir()
	for range 2 {
		_, err := Prepare(t.Context(), s, dir, inputs, "")
		if _, ok := errors.AsType[Problems](err); !ok || !strings.Contains(err.Error(), "inputs.tar: ") {
			t.Errorf("error %v", err)
		}
	}
	// The sources are those of the provenance.
	if _, err := Prepare(t.Context(), s, t.TempDir(), "", inputs); err == nil ||
		!strings.Contains(err.Error(), "inputs.tar differs: its SHA-256 is ") {
		t.Errorf("error %v", err)
	}
}

func TestStatementsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	file := statement(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct{ old, now, problem string }{
		"a part":            {`"release.json"`, `"other.json"`, "it is about a part of a release"},
		"another builder":   {"#workstation", "#cloud", "the builder"},
		"another type":      {`docs/provenance#go"`, `docs/provenance#make"`, "the build type"},
		"another parameter": {`"DBG"`, `"CC"`, "the parameter CC is not known"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(good), tt.old, tt.now, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(file, nil); err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: error %v, want %q", what, err, tt.problem)
		}
	}
}
