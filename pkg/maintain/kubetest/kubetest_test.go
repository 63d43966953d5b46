package kubetest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/gotest"
	"slipway.build/pkg/mechanism/report"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// A world is a tree, with the only modules that there are.
type world struct {
	root string // of the tree
	env  []string
}

// newWorld unpacks testdata/world.txtar, with or without the patch.
func newWorld(t *testing.T, patched bool) world {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "world.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range ar.Files {
		if strings.HasPrefix(ar.Files[i].Name, "patches/") && patched {
			ar.Files[i].Name = "tree/" + ar.Files[i].Name
		}
	}
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	proxy := goproxytest.NewTestServer(t, filepath.Join(dir, "mod"), "")
	w := world{filepath.Join(dir, "tree"), append(os.Environ(), "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY="+proxy.URL, "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=")}
	// The go.sum of the components; upstream's own has the library that only its tests use.
	c := w.Command(t.Context(), filepath.Join(w.root, "cmd"), "", "", "mod", "download", "all")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	return w
}

// Command makes a world a kubetest.Go.
func (w world) Command(ctx context.Context, dir, _, _ string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = dir, w.env
	return c
}

func (w world) open(t *testing.T) *kubetest.Sources {
	t.Helper()
	tree := kubetest.Tree{Root: w.root, Components: "cmd", Tags: []string{"selinux", "notest"}, Go: w}
	s, err := kubetest.Open(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFindReadsWordsAsUsersOfMakeKnowThem(t *testing.T) {
	t.Parallel()
	s := newWorld(t, false).open(t)
	for _, test := range []struct{ word, upstream, tree string }{
		{"k8s.io/kubernetes/pkg/scheduler", "k8s.io/kubernetes/pkg/scheduler", ""},
		{"k8s.io/kubernetes/pkg/...", "k8s.io/kubernetes/pkg/...", ""},
		{"k8s.io/kubernetes/...", "k8s.io/kubernetes/...", ""},
		{"k8s.io/api/core/", "k8s.io/api/core", ""},
		{"k8s.io/api/co...", "k8s.io/api/co...", ""},
		{"pkg/scheduler", "k8s.io/kubernetes/pkg/scheduler", ""},
		{"./pkg/scheduler/...", "k8s.io/kubernetes/pkg/scheduler/...", ""},
		{"./staging/src/k8s.io/api/core", "k8s.io/api/core", ""},
		{"vendor/k8s.io/api/core", "k8s.io/api/core", ""},
		{"slipway.build/cmd/widget", "slipway.build/cmd/widget", ""},
		{"./cmd/widget/...", "./widget/...", ""}, // the tree's own come first
		{"cmd/...", "./...", ""},
		{"./pkg/tool", "", "./pkg/tool"},
		{"pkg/tool/...", "", "./pkg/tool/..."},
	} {
		r, err := s.Find([]string{test.word})
		if err != nil {
			t.Errorf("%s: %v", test.word, err)
			continue
		}
		if up, own := strings.Join(r.Upstream, " "), strings.Join(r.Tree["."], " "); up != test.upstream || own != test.tree {
			t.Errorf("%s: got %q and %q, want %q and %q", test.word, up, own, test.upstream, test.tree)
		}
	}
}

func TestFindNamesEveryUnknownWord(t *testing.T) {
	t.Parallel()
	s := newWorld(t, false).open(t)
	_, err := s.Find([]string{"pkg/sheduler", "k8s.io/api/cor", "k8s.io/kubernetes/pkg/scheduler", "k8s.io/sample-cli-plugin/x", "k8s.io/..."})
	if err == nil || !badrequest.Is(err) {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{
		`unknown package "pkg/sheduler"; did you mean k8s.io/kubernetes/pkg/scheduler?`,
		`unknown package "k8s.io/api/cor"; did you mean k8s.io/api/core?`,
		`k8s.io/sample-cli-plugin@v0.99.1 is left out`, `unknown package "k8s.io/..."`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("lacks %q: %v", part, err)
		}
	}
}

func TestSelectCompilesSomeTestsAsUpstreamDoes(t *testing.T) {
	t.Parallel()
	s := newWorld(t, false).open(t)
	groups, err := s.Select(t.Context(), []string{"k8s.io/api/...", "k8s.io/kubernetes/pkg/k...", "k8s.io/kubernetes/cmd/kubeadm/..."}, s.Tags)
	if err != nil {
		t.Fatal(err)
	}
	want := []kubetest.Group{
		{
			Packages: []string{"k8s.io/api/core", "k8s.io/kubernetes/pkg/kubelet"},
			Flags:    []string{"-buildvcs=false", "-trimpath", "-tags=selinux,notest"},
		},
		{Packages: []string{"k8s.io/api/fuzz", "k8s.io/kubernetes/cmd/kubeadm/app/phases"}, Flags: []string{"-buildvcs=false", "-tags=selinux"}},
	}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = s.Select(t.Context(), []string{"./kubectl"}, s.Tags)
	if err == nil || !badrequest.Is(err) || !strings.HasSuffix(err.Error(),
		"no package there has tests; did you mean k8s.io/kubernetes/cmd/kubectl?") {
		t.Errorf("error %v", err)
	}
}

func TestTestsFindTheRepositoryAndMayWrite(t *testing.T) {
	t.Parallel()
	s := newWorld(t, false).open(t)
	r, err := s.Find([]string{"k8s.io/api/core", "pkg/kubelet", "pkg/server/...", "./pkg/tool", "./cmd/widget"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	summary, err := s.Run(t.Context(), r, kubetest.Options{Timeout: []string{"-timeout=1m"}, Env: os.Environ(),
		Show: gotest.Options{Out: &out}, Err: os.Stderr})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if len(summary.Packages) != 5 || summary.Count(report.Passed) != 5 {
		t.Errorf("got:\n%s", out.String())
	}
	if _, err := os.Stat(filepath.Join(s.Repository, "pkg", "kubelet", "written")); err != nil {
		t.Error(err)
	}
}

func TestTestsRunOnPatchedSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	s := w.open(t)
	affected, err := s.Affected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// test/integration/etcd imports the patched package, too, but is no unit test.
	if diff := cmp.Diff([]string{"k8s.io/api/core", "k8s.io/kubernetes/pkg/scheduler"}, affected); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out bytes.Buffer
	options := kubetest.Options{Timeout: []string{"-timeout=1m"}, Env: os.Environ(), Show: gotest.Options{Out: &out}, Err: os.Stderr}
	summary, err := s.Run(t.Context(), kubetest.Request{Upstream: affected}, options)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if summary.Count(report.Failed) != 1 || !strings.Contains(out.String(), "scheduler_test.go:7: Crew") {
		t.Errorf("got:\n%s", out.String())
	}

	// Without the patch, the copy is upstream's again.
	if err := os.RemoveAll(filepath.Join(w.root, "patches")); err != nil {
		t.Fatal(err)
	}
	s = w.open(t)
	if affected, err := s.Affected(t.Context()); err != nil || len(affected) > 0 {
		t.Errorf("got %v, %v", affected, err)
	}
	if data, err := os.ReadFile(filepath.Join(s.Repository, "staging", "src", "k8s.io", "api", "core", "types.go")); err != nil ||
		!bytes.Contains(data, []byte("Pod")) {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestGeneratedCodeIsThatOfPatchedSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	tree := kubetest.Tree{Root: w.root, Components: "cmd", Go: w}
	made := 0
	tree.Generator = kubetest.Generator{Recipe: "first", Run: func(_ context.Context, patched *patch.Overlay, tmp string) error {
		made++
		const types = "staging/src/k8s.io/api/core/types.go"
		now, err := patched.ReadFile(types)
		if err != nil {
			return err
		}
		if !bytes.Contains(now, []byte("Crew")) {
			t.Errorf("generated from %q", now)
		}
		if err := os.WriteFile(filepath.Join(tmp, "left.go"), []byte("package left\n"), 0o666); err != nil {
			return err
		}
		patched.Set("staging/src/k8s.io/api/core/zz_generated.go", patch.Change{Data: []byte("package core\n")})
		return nil
	}}
	for _, recipe := range []string{"first", "first", "second"} {
		tree.Generator.Recipe = recipe
		s, err := kubetest.Open(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(s.Repository, "staging", "src", "k8s.io", "api", "core", "zz_generated.go")); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(s.Repository, "tmp-*")); err != nil || len(left) > 0 {
			t.Errorf("temporary files stay: %q, %v", left, err)
		}
	}
	if made != 2 {
		t.Errorf("generated %d times, want 2", made)
	}
}

func TestPatchThatDoesNotApplyStopsTests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	name := filepath.Join(w.root, "patches", "0001-kind.patch")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.ReplaceAll(data, []byte(`"Pod"`), []byte(`"Bin"`)), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = kubetest.Open(t.Context(), kubetest.Tree{Root: w.root, Components: "cmd", Go: w})
	if err == nil || !strings.Contains(err.Error(), "patches/0001-kind.patch") {
		t.Errorf("error %v", err)
	}
}

func TestCommandTestsRunWithTheGivenPrograms(t *testing.T) {
	t.Parallel()
	var lacking *kubetest.MissingError
	switch err := kubetest.Require(); {
	case runtime.GOOS != "linux" || errors.As(err, &lacking):
		t.Skip(err) // it names the programs
	case err != nil && !errors.As(err, new(*kubetest.PortError)): // the scripts of the test listen on no port
		t.Fatal(err)
	}
	s := newWorld(t, false).open(t)
	names, err := s.Suites()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"namespace", "kubectl_version"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	childtest.Script(t, kubectl, "#!/bin/sh\necho our kubectl tests \"$1\"\n")
	var out bytes.Buffer
	options := kubetest.Options{Env: os.Environ(), Show: gotest.Options{Out: &out}, Err: os.Stderr}
	programs := func() ([]string, error) { return []string{kubectl}, nil }
	if err := s.CommandTests(t.Context(), []string{"namespace"}, programs, options); err != nil ||
		!strings.Contains(out.String(), "our kubectl tests namespace") {
		t.Errorf("%v\n%s", err, out.String())
	}
	err = s.CommandTests(t.Context(), []string{"kubectl_version"}, programs, options)
	if err == nil || err.Error() != "kubectl command tests failed: exit status 1" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	programs = func() ([]string, error) { cancel(); return nil, nil }
	if err := s.CommandTests(ctx, []string{"namespace"}, programs, options); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before the scripts start: error %v", err)
	}
	programs = func() ([]string, error) {
		return nil, errors.New("programs are compiled for a suite that does not exist")
	}
	err = s.CommandTests(t.Context(), []string{"namspace"}, programs, options)
	if err == nil || !badrequest.Is(err) || !strings.Contains(err.Error(), `unknown suite "namspace"; did you mean namespace?`) {
		t.Errorf("error %v", err)
	}
}

func TestCommandTestsLeaveTheUsersRepositoryAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	own := filepath.Join(t.TempDir(), "kubernetes")
	built := filepath.Join(own, "_output", "local", "bin")
	script := filepath.Join(own, "test", "cmd", "legacy-script.sh")
	for _, dir := range []string{built, filepath.Dir(script)} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(script, []byte("record_command run_namespace_tests\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(own, "_output", "bin")
	if err := os.Symlink(filepath.Join("local", "bin"), link); err != nil { // upstream's make does this
		t.Fatal(err)
	}
	mod := filepath.Join(w.root, "cmd", "go.mod")
	edit := w.Command(t.Context(), filepath.Dir(mod), "", "", "mod", "edit", "-replace=k8s.io/kubernetes="+own)
	if out, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("go mod edit: %v\n%s", err, out)
	}
	s := w.open(t)
	if names, err := s.Suites(); err != nil || len(names) != 1 {
		t.Errorf("got suites %v, %v", names, err)
	}
	programs := func() ([]string, error) { return nil, errors.New("programs are compiled") }
	err := s.CommandTests(t.Context(), nil, programs, kubetest.Options{Env: os.Environ()})
	if replaced := new(kubetest.ReplacedError); !errors.As(err, &replaced) || replaced.Folder != own || !badrequest.Is(err) {
		t.Errorf("error %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("_output/bin is no link any more: %v", err)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing *kubetest.MissingError
	if err := kubetest.Require(); !errors.As(err, &missing) || err.Error() != "not on PATH: bash, curl, jq, openssl, ss" {
		t.Errorf("error %v", err)
	}
	options := kubetest.Options{Race: []string{"-race"}}
	_, err := (&kubetest.Sources{}).Run(t.Context(), kubetest.Request{}, options)
	if err == nil || !strings.Contains(err.Error(), "-race needs a C compiler") || !strings.Contains(err.Error(), "name another in CC") {
		t.Errorf("error %v", err)
	}
}

func TestModulesThatOnlyTestsImportHaveUpstreamsSums(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	kubernetes, only, err := kubetest.TestModules(t.Context(), kubetest.Tree{Root: w.root, Components: "cmd", Go: w})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range kubernetes {
		paths = append(paths, m.Path)
	}
	if diff := cmp.Diff([]string{"k8s.io/kubernetes", "k8s.io/api"}, paths); diff != "" {
		t.Errorf("Kubernetes' modules (-want +got):\n%s", diff)
	}
	want := []module.Pinned{{
		Version:  module.Version{Path: "sigs.k8s.io/randfill", Version: "v1.0.0"},
		Sum:      "h1:RotmAzHEt3gvN41IZbLaRYmuSyETE9YpL2zbwuf3BTk=",
		GoModSum: "h1:wdp8RAWnI9vMBxBlvioJcuqwfYV9iXd6vLItQ36Ofus=",
	}}
	if diff := cmp.Diff(want, only); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}
