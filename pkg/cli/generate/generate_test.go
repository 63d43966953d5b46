package generate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/maintain/kit"
	"slipway.build/pkg/tree/worktree/gittest"
)

func TestTargetsHaveTheNamesAndCommentsOfFunctions(t *testing.T) {
	t.Parallel()
	library := fstest.MapFS{"build.go": {Data: []byte(`package targets

// QuickRelease builds one platform. It is the main job.
func QuickRelease() error { return nil }

// ClusterUp boots a cluster.
func ClusterUp(ctx context.Context) error { return nil }

// GeneratedFiles generates code.
func GeneratedFiles(context.Context) error { return nil }

// Component compiles one component: make kubectl.
func Component(ctx context.Context, name string) error { return nil }

func (tree) Exported() {}

func notATarget() {}
`)}}
	root := t.TempDir()
	write(t, root, "magefiles/own.go", "//go:build mage\n\npackage main\n\n// ShipIt sends a release.\n// It asks first.\nfunc ShipIt() {}\n")
	of := Tree{Root: root, Targets: library}
	var help bytes.Buffer
	if err := of.Help(&help); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(help.String(), "\n\n")
	want := `  cluster-up       boots a cluster.
  COMPONENT        compiles one component: make kubectl.
  generated_files  generates code.
  quick-release    builds one platform.
  ship-it          sends a release.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("help (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"cluster-up": "ClusterUp boots a cluster.",
		"kubectl": "Component compiles one component: make kubectl.",
		"ship-it": "ShipIt sends a release.\nIt asks first."} {
		help.Reset()
		if err := of.HelpFor(&help, name); err != nil || !strings.HasPrefix(help.String(), "make "+name+"\n\n"+want) {
			t.Errorf("help for %s: %q, %v", name, help.String(), err)
		}
	}
}

// Each drift comes on top of those before it, whose files have been made again: what an update leaves outdated is reported by the next one.
func TestDriftIsNoticed(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if err := in(root).UpdateFiles(t.Context()); err != nil {
		t.Fatal(err)
	}
	const page, completion = "docs/reference/slipway_build.md", "completions/slipway.bash"
	tests := []struct {
		name  string
		drift func(t *testing.T, root string)
		want  []string
	}{
		{"none", func(*testing.T, string) {}, nil},
		{"the same Go, written in another way", func(t *testing.T, root string) {
			replace(t, root, "release/release.yaml", "  version: go", "  version: !!str go")
		}, []string{kit.ArchiveFile}},
		{"another target", func(t *testing.T, root string) {
			write(t, root, "magefiles/more.go", "//go:build mage\n\npackage main\n\nfunc More() {}\n")
		}, []string{"build/targets.mk"}},
		{"edited", func(t *testing.T, root string) { write(t, root, page, "# something else\n") }, []string{page}},
		{"removed", func(t *testing.T, root string) { remove(t, root, completion) }, []string{completion}},
		{"no longer generated", func(t *testing.T, root string) { write(t, root, "docs/reference/slipway_old.md", "old") },
			[]string{"docs/reference/slipway_old.md"}},
		{"another build tag", func(t *testing.T, root string) { replace(t, root, "release/release.yaml", "tags: [", "tags: [more, ") },
			[]string{"build/bazel/generated/bazelrc", "build/bazel/generated/config.bzl", kit.ArchiveFile}},
		{"a module replaced by a folder", func(t *testing.T, root string) {
			write(t, root, "yaml/go.mod", "module sigs.k8s.io/yaml\n\ngo 1.22\n")
			replace(t, root, "cmd/go.mod", "godebug ", "replace sigs.k8s.io/yaml => ../yaml\n\ngodebug ")
		}, []string{"build/bazel/generated/config.bzl", kit.ArchiveFile}},
		{"a rule set of another version", func(t *testing.T, root string) {
			replace(t, root, "MODULE.bazel", `version = "1.0.0"`, `version = "1.0.1"`)
		}, []string{workspaceFile}},
		{"beside what is generated", func(t *testing.T, root string) { write(t, root, "docs/architecture.md", "by hand") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.drift(t, root)
			if diff := cmp.Diff(tt.want, drifted(t, root)); diff != "" {
				t.Errorf("outdated (-want +got):\n%s", diff)
			}
			if tt.want == nil {
				return
			}
			if err := in(root).UpdateFiles(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUpdateDoesNotWriteCurrentFiles(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if err := in(root).UpdateFiles(t.Context()); err != nil {
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
	if err := in(root).UpdateFiles(t.Context()); err != nil {
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
	if err := errors.Join(in(root).UpdateFiles(t.Context()), in(root).UpdateBuildFiles(t.Context())); err != nil {
		t.Fatal(err)
	}
	write(t, root, "cmd/kubectl/more.go", "package main\n\nimport _ \"k8s.io/client-go/rest\"\n")
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == BuildFiles })
	problem, err := checks[i].run(t.Context(), in(root))
	if err != nil || !strings.Contains(problem, "run make update") || !strings.Contains(problem, `+        "@io_k8s_client_go//rest",`) {
		t.Errorf("error %v: %s", err, problem)
	}
	if err := in(root).UpdateBuildFiles(t.Context()); err != nil {
		t.Fatal(err)
	}
	if problem, err := checks[i].run(t.Context(), in(root)); err != nil || problem != "" {
		t.Errorf("after an update: %v: %s", err, problem)
	}
}

func TestChecksAreChosenByName(t *testing.T) {
	all, err := ChecksOf(nil)
	if err != nil || len(all) != len(checks) || len(QuickChecks()) == 0 || len(QuickChecks()) >= len(all) {
		t.Errorf("all checks %q, quick ones %q: %v", all, QuickChecks(), err)
	}
	if some, err := ChecksOf([]string{"misspell", "gofmt"}); err != nil || !slices.Equal(some, []string{"gofmt", "misspell"}) {
		t.Errorf("checks %q, %v", some, err)
	}
	_, err = UpdatesOf([]string{"BUILD-file"})
	if exit, ok := errors.AsType[*cli.ExitError](err); !ok || exit.Code != 2 || !strings.Contains(err.Error(), "did you mean BUILD-files?") {
		t.Errorf("error %v", err)
	}
}

func TestMisspelledWordIsNoticed(t *testing.T) {
	t.Parallel()
	root := tree(t)
	gittest.New(t).At(root).Git("init", "-q")
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == "misspell" })
	write(t, root, "LICENSE", "a "+"langua"+"eg of others\n")
	if problem, err := checks[i].run(t.Context(), in(root)); err != nil {
		t.Fatalf("%v: %s", err, problem)
	}
	write(t, root, "docs/new.md", "the "+"behavi"+"our\n")
	if problem, err := checks[i].run(t.Context(), in(root)); err == nil || !strings.Contains(problem, "docs/new.md:1:4") {
		t.Errorf("error %v: %s", err, problem)
	}
}

func TestOnlyStaleFilesAreCalledStale(t *testing.T) {
	t.Parallel()
	root := t.TempDir() // no tree, so nothing can be generated
	for _, name := range []string{Code, BuildFiles} {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
		if problem, err := checks[i].run(t.Context(), in(root)); err == nil || strings.Contains(problem, "not up to date") {
			t.Errorf("%s: error %v: %s", name, err, problem)
		}
	}
}

func TestGofmtSaysWhatToRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	gittest.New(t).At(root).Git("init", "-q")
	write(t, root, "a.go", "package  a\n")
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == "gofmt" })
	if problem, err := checks[i].run(t.Context(), in(root)); err != nil || problem != "not formatted, run gofmt -w:\na.go\n" {
		t.Errorf("error %v: %q", err, problem)
	}
}

func TestMissingToolFailsInCI(t *testing.T) {
	for ci, want := range map[string]string{"": "SKIPPED", "true": "FAILED "} {
		t.Setenv("CI", ci)
		var out strings.Builder
		err := runChecks(t.Context(), []check{{name: "lint", tool: "no-such-tool"}}, in(t.TempDir()), &out)
		if got := out.String(); got != want+"  lint: no-such-tool is not installed\n" || (err != nil) != (ci == "true") {
			t.Errorf("CI=%s: error %v: %s", ci, err, got)
		}
	}
}

// tree copies the files that others are generated from.
func tree(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	from := os.DirFS(filepath.Join("..", "..", ".."))
	for _, pattern := range []string{"go.mod", "go.sum", "release/release.yaml", "magefiles/*.go", "cmd/go.mod", "cmd/go.sum",
		"cmd/*/*.go", "cmd/*/*/*",
		"images/*/*", "images/*/*/*.go", "release/addons/*/*", ".bazel*", "*.bazel", "WORKSPACE", "release/BUILD.bazel",
		".git[ai]*", "Makefile", "build/slipway.mk", "build/codegen/*"} {
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

// in returns the tree in root, with slipway's targets.
func in(root string) Tree { return Tree{Root: root, Targets: os.DirFS(filepath.Join("..", "targets"))} }

func replace(t *testing.T, root, name, old, with string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not hold %q", name, old)
	}
	write(t, root, name, strings.Replace(string(data), old, with, 1))
}

func drifted(t *testing.T, root string) []string {
	t.Helper()
	names, err := in(root).outdated(t.Context())
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

func TestPipelinesNameWhatExists(t *testing.T) {
	t.Parallel()
	root := tree(t)
	const workflow = `name: Main
jobs:
  make it:
    steps:
    - name: make a release of it
      run: |
        set -e
        make KUBE_VERBOSE=1 quick-release kubectl
        _output/bin/slipway cluster up --control-plane-only
        _output/bin/slipway verify --key "$KEY"
        slipway sign --key env://RELEASE_KEY | tee log
    - name: PLACE
      run: COMMAND
`
	for command, want := range map[string]string{
		"make quick-release": "",
		"make quick-releas": ".github/workflows/main.yml:13: make quick-releas: unknown target of make \"quick-releas\"; " +
			"did you mean quick-release?",
		"slipway verfy":                `unknown command "verfy" for "slipway"`,
		"slipway cluster boot":         `unknown command "boot" for "slipway cluster"`,
		"slipway verify --keys a":      "unknown flag: --keys",
		`slipway verify --key "$A" -z`: "",
		"echo make nothing":            "",
		"[":                            ".github/workflows/main.yml: yaml: ",
	} {
		write(t, root, ".github/workflows/main.yml", strings.Replace(workflow, "COMMAND", command, 1))
		problem, err := in(root).checkPipelines()
		if err != nil || (problem == "") != (want == "") || !strings.Contains(problem, want) {
			t.Errorf("%s: error %v: %s", command, err, problem)
		}
	}
	write(t, root, ".github/workflows/main.yml", strings.Replace(workflow, "COMMAND", "make all", 1))
	write(t, root, ".gitlab-ci.yml", "main-check:\n  script:\n  # compile it\n  - make slipwy\n  - |\n    set -e\n    slipway patch lst\n")
	problem, err := in(root).checkPipelines()
	if err != nil || !strings.Contains(problem, ".gitlab-ci.yml:4: make slipwy: ") || !strings.Contains(problem, `unknown command "lst"`) {
		t.Errorf("error %v: %s", err, problem)
	}
}

func TestLocksHaveWhatImagesAskFor(t *testing.T) {
	t.Parallel()
	root := tree(t)
	if problem, err := checkLocks(root); err != nil || problem != "" {
		t.Fatalf("error %v: %s", err, problem)
	}
	replace(t, root, "images/debian-iptables/packages.txt", "suite trixie\n", "suite trixie\nsocat\n")
	problem, err := checkLocks(root)
	if err != nil || !strings.Contains(problem, "images/debian-iptables/debian.lock lacks socat for linux/arm64\n") ||
		!strings.HasSuffix(problem, "run make update-debian-locks") {
		t.Errorf("error %v: %s", err, problem)
	}
	replace(t, root, "images/debian-iptables/packages.txt", "suite trixie\nsocat\n", "suite forky\n")
	problem, err = checkLocks(root)
	if err != nil || !strings.Contains(problem, "images/debian-iptables/debian.lock is of trixie, and packages.txt of forky") {
		t.Errorf("error %v: %s", err, problem)
	}
}
