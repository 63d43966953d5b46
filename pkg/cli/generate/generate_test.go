package generate

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOfTargets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"All": "all", "QuickRelease": "quick-release", "QuickReleaseImages": "quick-release-images", "TestIntegration": "test-integration",
	} {
		if got := target(name); got != want {
			t.Errorf("target %s is %s, want %s", name, got, want)
		}
	}
}

func TestMakefileHasEveryMagefileTarget(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if err := Help(&help, filepath.Join("..", "..", "..", "magefiles")); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(makefile), "TARGETS :=")
	if !ok {
		t.Fatal("Makefile has no TARGETS")
	}
	list, _, _ = strings.Cut(list, "\n\n")
	declared := map[string]bool{}
	for _, name := range strings.Fields(strings.ReplaceAll(list, "\\\n", " ")) {
		declared[name] = true
	}
	shown := map[string]bool{}
	for line := range strings.Lines(help.String()) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "  ") && len(fields) > 1 && fields[0] != "COMPONENT" {
			shown[fields[0]] = true
		}
	}
	if diff := cmp.Diff(declared, shown); diff != "" {
		t.Errorf("targets of the Makefile, and of the magefiles (-Makefile +magefiles):\n%s", diff)
	}
}

func TestHelpTellsWhatATargetDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "build.go", `//go:build mage

package main

// QuickRelease builds one platform. It is the main job.
func QuickRelease() error { return nil }

func notATarget() {}
`)
	var help bytes.Buffer
	if err := Help(&help, dir); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(help.String(), "  quick-release  builds one platform.\n") {
		t.Errorf("help:\n%s", help.String())
	}
	if strings.Contains(strings.ToLower(help.String()), "notatarget") {
		t.Errorf("help has what is no target:\n%s", help.String())
	}
}

func TestDriftIsNoticed(t *testing.T) {
	t.Parallel()
	const page, completion = "docs/reference/slipway_build.md", "completions/slipway.bash"
	tests := []struct {
		name  string
		drift func(t *testing.T, root string)
		want  []string
	}{
		{"none", func(*testing.T, string) {}, nil},
		{"edited", func(t *testing.T, root string) { write(t, root, page, "# something else\n") }, []string{page}},
		{"removed", func(t *testing.T, root string) { remove(t, root, completion) }, []string{completion}},
		{"no longer generated", func(t *testing.T, root string) { write(t, root, "docs/reference/slipway_old.md", "old") },
			[]string{"docs/reference/slipway_old.md"}},
		{"another build tag", func(t *testing.T, root string) { replace(t, root, "release/release.yaml", "tags: [", "tags: [more, ") },
			[]string{"build/bazel/generated/bazelrc", "build/bazel/generated/config.bzl"}},
		{"a module replaced by a folder", func(t *testing.T, root string) {
			write(t, root, "yaml/go.mod", "module sigs.k8s.io/yaml\n\ngo 1.22\n")
			replace(t, root, "cmd/go.mod", "godebug ", "replace sigs.k8s.io/yaml => ../yaml\n\ngodebug ")
		}, []string{"build/bazel/generated/config.bzl"}},
		{"beside what is generated", func(t *testing.T, root string) { write(t, root, "docs/architecture.md", "by hand") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := tree(t)
			if err := update(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			tt.drift(t, root)
			if diff := cmp.Diff(tt.want, drifted(t, root)); diff != "" {
				t.Errorf("outdated (-want +got):\n%s", diff)
			}
			if err := update(t.Context(), root); err != nil {
				t.Fatal(err)
			}
			if left := drifted(t, root); left != nil {
				t.Errorf("still outdated after an update: %q", left)
			}
		})
	}
}

func TestUpdateLeavesAloneWhatIsCurrent(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if err := update(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, "docs", "reference", "slipway.md")
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, before.ModTime().Add(-1e12), before.ModTime().Add(-1e12)); err != nil {
		t.Fatal(err)
	}
	if err := update(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if !after.ModTime().Before(before.ModTime()) {
		t.Error("a page that did not change was written again")
	}
}

func TestStaleBuildFileIsNoticedAndUpdated(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if err := Update(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	write(t, root, "cmd/kubectl/more.go", "package main\n\nimport _ \"k8s.io/client-go/rest\"\n")
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == "BUILD files" })
	problem, err := checks[i].run(t.Context(), root)
	if err == nil || !strings.Contains(problem, "run make update") || !strings.Contains(problem, `+        "@io_k8s_client_go//rest",`) {
		t.Errorf("error %v: %s", err, problem)
	}
	if err := Update(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	if problem, err := checks[i].run(t.Context(), root); err != nil || problem != "" {
		t.Errorf("after an update: %v: %s", err, problem)
	}
}

// tree copies of this tree what files are generated from.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	from := os.DirFS(filepath.Join("..", "..", ".."))
	for _, pattern := range []string{"go.mod", "go.sum", "release/release.yaml", "cmd/go.mod", "cmd/go.sum", "cmd/*/*.go", "images/*/*", "images/*/*/*.go", "BUILD.bazel"} {
		names, err := fs.Glob(from, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if data, err := fs.ReadFile(from, name); err == nil { // not a folder
				write(t, root, name, string(data))
			}
		}
	}
	return root
}

func replace(t *testing.T, root, name, old, with string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, name, strings.Replace(string(data), old, with, 1))
}

func drifted(t *testing.T, root string) []string {
	t.Helper()
	names, err := outdated(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t *testing.T, root, name, data string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, root, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}
