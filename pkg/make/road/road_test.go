package road

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/catalog"
)

func TestBuildFlags(t *testing.T) {
	t.Parallel()
	const always = "-buildvcs=false\n-mod=readonly\n"
	tests := []struct {
		name    string
		options Options
		want    string // a flag on each line
	}{
		{"a release", Options{}, always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-s -w -X a.b=c"},
		{"a debug build keeps symbols, paths and tracing", Options{Debug: true},
			always + "-gcflags=all=-N -l\n-tags=selinux\n-ldflags=-X a.b=c"},
		{"GOLDFLAGS replaces -s -w", Options{LDFlags: "-w -linkmode=internal"},
			always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-w -linkmode=internal -X a.b=c"},
		{"GOLDFLAGS in a debug build", Options{Debug: true, LDFlags: "-compressdwarf=false"},
			always + "-gcflags=all=-N -l\n-tags=selinux\n-ldflags=-compressdwarf=false -X a.b=c"},
		{"GOGCFLAGS is for all packages", Options{GCFlags: "-l -B"},
			always + "-trimpath\n-gcflags=all=-l -B\n-tags=selinux,grpcnotrace\n-ldflags=-s -w -X a.b=c"},
		{"GOGCFLAGS in a debug build", Options{Debug: true, GCFlags: "-B"},
			always + "-gcflags=all=-N -l -B\n-tags=selinux\n-ldflags=-X a.b=c"},
		{"tags in GOFLAGS are added", Options{GoFlags: "-v -tags=acme,fips -p=2"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,acme,fips\n-ldflags=-s -w -X a.b=c"},
		{"two hyphens are one", Options{GoFlags: "--tags=acme"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,acme\n-ldflags=-s -w -X a.b=c"},
		{"the last of several -tags counts, as in the Go command", Options{GoFlags: "-tags=one -tags=two"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,two\n-ldflags=-s -w -X a.b=c"},
		{"other flags of GOFLAGS are left to the Go command", Options{GoFlags: "-x -ldflags=-w"},
			always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-s -w -X a.b=c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Spec{Tags: []string{"selinux", "grpcnotrace"}, LDFlags: "-X a.b=c", Options: tt.options}
			if diff := cmp.Diff(tt.want, strings.Join(c.BuildFlags(), "\n")); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"selinux", "grpcnotrace"}, c.Tags); diff != "" {
				t.Errorf("the spec's own tags changed:\n%s", diff)
			}
		})
	}
}

func TestBuildFlagsWithoutTagsOrStamp(t *testing.T) {
	t.Parallel()
	want := []string{"-buildvcs=false", "-mod=readonly", "-trimpath", "-ldflags=-s -w"}
	if diff := cmp.Diff(want, Spec{}.BuildFlags()); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

func TestNameOfABinary(t *testing.T) {
	t.Parallel()
	tests := []struct {
		bin  Binary
		os   string
		want string
	}{
		{Binary{Package: "./kubectl"}, "linux", "kubectl"},
		{Binary{Package: "./kubectl"}, "windows", "kubectl.exe"},
		{Binary{Package: "github.com/onsi/ginkgo/v2/ginkgo"}, "linux", "ginkgo"},
		{Binary{Package: "example.com/tool/v2"}, "linux", "tool"},
		{Binary{Package: "gopkg.in/tool.v2"}, "linux", "tool.v2"},
		{Binary{Package: "k8s.io/kubernetes/test/e2e", Test: true}, "linux", "e2e.test"},
		{Binary{Package: "k8s.io/kubernetes/test/e2e", Test: true}, "windows", "e2e.test.exe"},
	}
	for _, tt := range tests {
		c := Spec{Platform: catalog.Platform{OS: tt.os, Arch: "amd64"}}
		if got := c.File(tt.bin); got != tt.want {
			t.Errorf("%s on %s is %s, want %s", tt.bin.Package, tt.os, got, tt.want)
		}
	}
}

func TestMainPackagesAreBuiltTogetherAndThenTests(t *testing.T) {
	t.Parallel()
	a, b := Target{Binary: Binary{Package: "./a"}}, Target{Binary: Binary{Package: "./b"}}
	e2e := Target{Binary: Binary{Package: "./e2e", Test: true}}
	want := []GoCommand{{[]string{"build"}, []Target{a, b}}, {[]string{"test", "-c", "-vet=off"}, []Target{e2e}}}
	if diff := cmp.Diff(want, Compilation{Targets: []Target{a, e2e, b}}.GoCommands()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := (Compilation{Targets: []Target{e2e}}).GoCommands(); len(got) != 1 {
		t.Errorf("commands %v for a test alone", got)
	}
}

func TestCommandLinesAreQuotedForAShell(t *testing.T) {
	t.Parallel()
	got := ShellCommand("/my tree", []string{"A=", "B=c d"}, "go", "build", "-ldflags=-s -w", "it's", "")
	if want := `cd '/my tree' && env A= 'B=c d' go build '-ldflags=-s -w' 'it'\''s' ''`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := ShellCommand("", nil, "bazel", "build"); got != "bazel build" {
		t.Error(got)
	}
}

func TestModFlagIsForTheModulesFolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ module, file, want string }{
		{"cmd", "_output/patched/go.mod", "-modfile=../_output/patched/go.mod"},
		{"images/etcd", "_output/patched/go.mod", "-modfile=../../_output/patched/go.mod"},
		{"cmd", "/modules/slipway/go.mod", "-modfile=/modules/slipway/go.mod"},
	} {
		s := Spec{Module: test.module, ModFile: test.file}
		if got := s.ModFlag(); got != test.want || !slices.Contains(s.BuildFlags(), test.want) {
			t.Errorf("%s in %s: %s, want %s", test.file, test.module, got, test.want)
		}
	}
}

func TestRecipeHoldsEveryField(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, key{})
}

func TestCryptographicModuleIsInRecipesOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	recipe := func(fips string) string {
		return strings.Join(Recipe("go1.26.8", Spec{Options: Options{FIPS: fips}}, Binary{}), "\n")
	}
	if without := recipe(""); strings.Contains(without, "FIPS=") || recipe("v1.0.0") == without || recipe("v1.26.0") == recipe("v1.0.0") {
		t.Errorf("recipes\n%s\n%s", without, recipe("v1.0.0"))
	}
}
