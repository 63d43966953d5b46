package codegen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/child/childtest"
)

// repository writes the small repository, with generators that append their command line to a log, and say in --help what they know.
func repository(t *testing.T, known string) (r *Repository, ran func() []string) {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "repository.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	return &Repository{Dir: dir, Tools: fakeTools(t, log, known)}, func() []string {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), dir, "DIR")), "\n")
	}
}

// fakeTools makes generators of shell scripts.
func fakeTools(t *testing.T, log, known string) *Tools {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n[ \"$1\" = --help ] && { echo '  " + known + " string   help'; exit 2; }\necho \"${0##*/} $*\" >>'" + log + "'\n"
	for _, name := range []string{"deepcopy-gen", "defaulter-gen", "conversion-gen", "register-gen", "client-gen",
		"lister-gen", "go-to-protobuf"} {
		childtest.Script(t, filepath.Join(dir, "bin", name), script)
	}
	return &Tools{Go: &toolchain.Go{Root: dir}, Dir: dir, help: map[string]string{}}
}

func TestGeneratorsGetTheMarkedPackages(t *testing.T) {
	t.Parallel()
	r, ran := repository(t, "--unknown")
	if err := r.Generate(t.Context(), []string{"deepcopy", "defaults"}, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deepcopy-gen --go-header-file=DIR/hack/boilerplate/boilerplate.generatego.txt --output-file=zz_generated.deepcopy.go" +
			" ./pkg/apis/apps ./staging/src/k8s.io/api/apps/v1 ./staging/src/k8s.io/api/core/v1",
		"defaulter-gen --go-header-file=DIR/hack/boilerplate/boilerplate.generatego.txt --output-file=zz_generated.defaults.go " +
			"./pkg/apis/apps/v1",
	}
	if diff := cmp.Diff(want, ran()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	for _, stale := range []string{"pkg/apis/apps/zz_generated.deepcopy.go", "pkg/old/zz_generated.deepcopy.go"} {
		if _, err := os.Stat(r.path(stale)); !os.IsNotExist(err) {
			t.Errorf("%s is still there", stale)
		}
	}
}

func TestGeneratorsGetFlagsThatTheirVersionKnows(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--lint-rules":    "--lint-rules=known-tags-only,require-explicit-disablement",
		"--bounding-dirs": "--bounding-dirs=k8s.io/kubernetes,k8s.io/api",
	} {
		r, ran := repository(t, flag)
		if err := r.Generate(t.Context(), []string{"deepcopy"}, nil); err != nil {
			t.Fatal(err)
		}
		line := ran()[0]
		if !strings.Contains(line, want) || strings.Count(line, " --") != 3 {
			t.Errorf("a generator that knows %s got %s", flag, line)
		}
	}
}

func TestOnlyChangedPackagesAreGenerated(t *testing.T) {
	t.Parallel()
	r, ran := repository(t, "--unknown")
	found, err := scan(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	changed := found.importers([]string{"staging/src/k8s.io/api/apps/v1"}, importPath)
	if diff := cmp.Diff(map[string]bool{"staging/src/k8s.io/api/apps/v1": true, "pkg/apis/apps/v1": true, "pkg/scheduler": true},
		changed); diff != "" {
		t.Errorf("packages that import the changed one (-want +got):\n%s", diff)
	}
	if err := r.Generate(t.Context(), []string{"protobuf", "deepcopy", "conversions", "register"}, changed); err != nil {
		t.Fatal(err)
	}
	var tools []string
	for _, line := range ran() {
		words := strings.Fields(line)
		tools = append(tools, words[0]+" "+words[len(words)-1])
	}
	want := []string{"go-to-protobuf --proto-import=DIR/third_party/protobuf", "deepcopy-gen ./staging/src/k8s.io/api/apps/v1",
		"conversion-gen ./pkg/apis/apps/v1"}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(r.path("pkg/apis/apps/zz_generated.deepcopy.go")); err != nil {
		t.Errorf("the file of a package that did not change: %v", err)
	}
}

func TestClientsAreMadeForServedGroups(t *testing.T) {
	t.Parallel()
	r, ran := repository(t, "--unknown")
	if err := r.Generate(t.Context(), []string{"listers", "clients"}, nil); err != nil {
		t.Fatal(err)
	}
	lines := ran()
	if got := strings.Join(strings.Fields(lines[0])[len(strings.Fields(lines[0]))-3:],
		" "); got != "--input=core/v1 --input=apps/v1 --input=apiserverinternal/v1alpha1" {
		t.Errorf("clients are made for %s", got)
	}
	if _, err := os.Stat(r.path("staging/src/k8s.io/client-go/listers/apps/v1/deployment.go")); !os.IsNotExist(err) {
		t.Error("a generated lister is still there")
	}
	if _, err := os.Stat(r.path("staging/src/k8s.io/client-go/listers/apps/v1/expansion.go")); err != nil {
		t.Errorf("a file that people wrote: %v", err)
	}
}

func TestComparisonNamesFiles(t *testing.T) {
	t.Parallel()
	r, _ := repository(t, "--unknown")
	script := filepath.Join(r.Tools.Dir, "bin", "deepcopy-gen")
	make := "#!/bin/sh\n[ \"$1\" = --help ] && { echo none; exit; }\necho 'package apps // new' >pkg/apis/apps/zz_generated.deepcopy.go\n" +
		"echo package v1 >staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go\n"
	childtest.Script(t, script, make)
	c, err := r.Compare(t.Context(), []string{"deepcopy"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Text(&text); err != nil {
		t.Fatal(err)
	}
	want := `pkg/apis/apps/zz_generated.deepcopy.go: differs
pkg/old/zz_generated.deepcopy.go: is not made
staging/src/k8s.io/api/core/v1/zz_generated.deepcopy.go: is not upstream's
3 of 3 generated files differ from upstream's
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("comparison (-want +got):\n%s", diff)
	}
}

func TestFailedGeneratorSaysWhy(t *testing.T) {
	t.Parallel()
	r, _ := repository(t, "--unknown")
	script := filepath.Join(r.Tools.Dir, "bin", "deepcopy-gen")
	childtest.Script(t, script, "#!/bin/sh\necho types.go:3:1: syntax error >&2\nexit 1\n")
	err := r.Generate(t.Context(), []string{"deepcopy"}, nil)
	if err == nil || !strings.Contains(err.Error(), "generate deepcopy: deepcopy-gen: exit status 1") ||
		!strings.Contains(err.Error(), "types.go:3:1: syntax error") {
		t.Errorf("error %v", err)
	}
}

func TestUnknownGroupIsRefused(t *testing.T) {
	t.Parallel()
	if err := CheckGroups([]string{"deepcopies"}); err == nil || !strings.Contains(err.Error(), "there are protobuf, deepcopy") {
		t.Errorf("error %v", err)
	}
}

// Versions of Kubernetes differ in what their projects have: what upstream does not have there is not made.
func TestProjectsAreAsTheRepositoryHasThem(t *testing.T) {
	t.Parallel()
	const dir = staging + "/k8s.io/apiextensions-apiserver"
	r := &Repository{}
	whole := *r.project(dir + "/pkg/apis")
	for _, test := range []struct {
		dirs []string
		want func(p *Project)
	}{
		{[]string{"pkg/generated/openapi", "pkg/generated/openapi/cmd/models-schema", "pkg/client/applyconfiguration"},
			func(p *Project) { p.Models = true }},
		{[]string{"pkg/generated/openapi", "pkg/client/applyconfiguration"}, func(*Project) {}},
		{[]string{"pkg/generated/openapi"}, func(p *Project) { p.ApplyConfigs = false }},
		{nil, func(p *Project) { p.OpenAPI, p.ApplyConfigs = false, false }},
	} {
		want := whole
		test.want(&want)
		got := whole.in(func(d string) bool { return slices.Contains(test.dirs, strings.TrimPrefix(d, dir+"/")) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", test.dirs, diff)
		}
	}
}
