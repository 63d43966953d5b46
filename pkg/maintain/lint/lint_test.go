package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/tree/catalog"
)

// An environment is a kubetest.Go.
type environment []string

func (e environment) Command(ctx context.Context, dir, goos, goarch string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = dir, slices.Clone(e)
	if goos != "" {
		c.Env = append(c.Env, "GOOS="+goos, "GOARCH="+goarch)
	}
	return c
}

// open unpacks testdata/world.txtar, without some files, and opens its tests.
func open(t *testing.T, without ...string) *kubetest.Sources {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "world.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return slices.Contains(without, f.Name) })
	dir := t.TempDir()
	if err := txtar.Write(ar, dir); err != nil {
		t.Fatal(err)
	}
	proxy := goproxytest.NewTestServer(t, filepath.Join(dir, "mod"), "")
	env := environment(append(os.Environ(), "GOENV=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "CGO_ENABLED=0",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY="+proxy.URL, "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY="))
	root := filepath.Join(dir, "tree")
	if out, err := env.Command(t.Context(), filepath.Join(root, "cmd"), "", "", "mod", "download", "all").CombinedOutput(); err != nil {
		t.Fatalf("go mod download: %v\n%s", err, out)
	}
	s, err := kubetest.Open(t.Context(), kubetest.Tree{Root: root, Components: "cmd", Tags: []string{"notest"}, Go: env})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lint returns the problems of the tree's own package and of its patch, as text.
func lint(t *testing.T, s *kubetest.Sources, all bool, on ...catalog.Platform) []string {
	t.Helper()
	r, err := s.Find([]string{"./cmd/..."})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := Run(t.Context(), s, r, Options{Platforms: on, All: all, Say: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Text(&out, problems, len(on)); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

const (
	own     = `cmd/own/own.go:5:25: printf: fmt.Sprintf format %d has arg "own" of wrong type string`
	windows = "cmd/own/own_windows.go:3:15: compile: undefined: undefined (windows/amd64)"
	thing   = "_output/.slipway/test/kubernetes/pkg/thing/thing.go"
)

// What the patch brings in, by line.
var broughtIn = []string{
	thing + `:11:2: logcheck: function "Infof" should not be used, convert to contextual logging`,
	thing + ":11:19: forbidigo: use of `md5.Sum` forbidden because \"prefer a secure hash\"",
	thing + ":12:2: unusedresult: result of fmt.Sprintf call not used",
}

var inNoFile = []string{
	"api: patches/0001-things.patch: the field thing.Thing.name with number 1 is removed",
	"feature-gates: versioned feature list: \nkubernetes: feature-gates verify",
	`import-boss: "k8s.io/kubernetes/pkg/thing" -> "crypto/md5" is forbidden`,
}

func TestProblemsOfTheTreeAndOfItsPatchesAreFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	host := catalog.Platform{OS: "linux", Arch: "amd64"}
	got := lint(t, s, false, host)
	want := slices.Concat(strings.Split(strings.Join(inNoFile, "\n"), "\n"), broughtIn, []string{own})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	got = lint(t, s, true, host)
	if upstreams := thing + `:17:25: printf: fmt.Sprintf format %d has arg "upstream" of wrong type string`; !slices.Contains(got, upstreams) {
		t.Errorf("--all lacks %q: %q", upstreams, got)
	}
}

func TestAPlatformsOwnFilesAreCompiled(t *testing.T) {
	t.Parallel()
	s := open(t, "tree/patches/0001-things.patch")
	got := lint(t, s, false, catalog.Platform{OS: "linux", Arch: "amd64"}, catalog.Platform{OS: "windows", Arch: "amd64"})
	if want := []string{own + " (linux/amd64)", windows}; !slices.Equal(got, want) { // what does not compile is not analyzed
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUpstreamWithoutRulesIsAnError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hack/golangci.yaml", "hack/logcheck.conf"} {
		s := open(t, "mod/k8s.io_kubernetes_v1.99.1/"+name)
		_, err := Run(t.Context(), s, kubetest.Request{}, Options{Platforms: []catalog.Platform{catalog.Host()}, Say: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
	}
}

func TestPatchesOfFeatureGates(t *testing.T) {
	code := []byte("package features\n\nimport \"k8s.io/component-base/featuregate\"\n")
	for _, tt := range []struct {
		name     string
		old, now []byte
		want     bool
	}{
		{name: "pkg/thing/thing.go", old: []byte("package thing\n"), now: []byte("package thing\n\nvar x int\n")},
		{name: "pkg/features/kube_features.go", old: code, now: code, want: true},
		{name: "pkg/features/new.go", now: code, want: true},
		{name: "pkg/features/gone.go", old: code, want: true},
		{name: "test/compatibility_lifecycle/reference/versioned_feature_list.yaml", now: []byte("- name: A\n"), want: true},
	} {
		if got := defineGates(tt.name, tt.old, tt.now); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

func TestChangedLines(t *testing.T) {
	for _, tt := range []struct {
		old, now string
		want     []int
	}{
		{"", "a\nb\n", []int{1, 2}},
		{"a\nb\nc\n", "a\nx\nc\ny\n", []int{2, 4}},
		{"a\nb\n", "b\n", nil},
		{"a\n", "", nil},
		{"a\n", "a\n", nil},
		{"a", "a\nb", []int{1, 2}}, // the first line has an end now
	} {
		lines := changedLines([]byte(tt.old), []byte(tt.now))
		var got []int
		for row := 1; row < 9; row++ {
			if lines[row] {
				got = append(got, row)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q to %q: lines %v, want %v", tt.old, tt.now, got, tt.want)
		}
	}
}

func TestRulesHide(t *testing.T) {
	var r rules
	r.Linters.Exclusions.Rules = []exclusion{
		{Linters: []string{"forbidigo"}, Path: `_test\.go$`, Text: "not be used"},
		{Linters: []string{"govet"}, Text: "lostcancel"},
		{Linters: []string{"logcheck"}, PathExcept: "^cmd/"},
		{Text: "^shift: of all linters$"},
	}
	for _, tt := range []struct {
		check, message, file string
		want                 bool
	}{
		{"forbidigo", "should not be used", "a_test.go", true},
		{"forbidigo", "is forbidden", "a_test.go", false},
		{"forbidigo", "should not be used", "a.go", false},
		{"lostcancel", "the cancel function is not used", "a.go", true},
		{"printf", "wrong type", "a.go", false},
		{"logcheck", "x", "pkg/a.go", true},
		{"logcheck", "x", "cmd/a.go", false},
		{"shift", "of all linters", "a.go", true},
	} {
		if got := r.hides(Problem{Check: tt.check, Message: tt.message}, tt.file); got != tt.want {
			t.Errorf("%+v: hidden %v", tt, got)
		}
	}
}

func TestCompilerIsReadOnEachPlatform(t *testing.T) {
	l := &linter{Sources: &kubetest.Sources{Tree: kubetest.Tree{Root: "/a tree"}}}
	for _, arch := range []string{"amd64", "arm64"} {
		none, err := l.readCompiler("/a tree/cmd", catalog.Platform{OS: "linux", Arch: arch}, "# x\nx/a.go:3:2: undefined: y\n")
		if err != nil || none {
			t.Errorf("%s: no problems %v, error %v", arch, none, err)
		}
	}
	want := []Problem{{"cmd/x/a.go", 3, 2, "compile", "undefined: y", []string{"linux/amd64", "linux/arm64"}}}
	if diff := cmp.Diff(want, l.problems); diff != "" {
		t.Error(diff)
	}
	if none, err := l.readCompiler("", catalog.Host(), "go: updates to go.mod needed\n"); !none || err != nil {
		t.Errorf("no problems %v, error %v", none, err)
	}
}

func TestProgramThatCouldNotLookIsNoticed(t *testing.T) {
	for line, want := range map[string]bool{
		"E1128 07:37:01.000491   10391 main.go:50] failed to load packages: err: exit status 1": true,
		"I1128 07:37:01.000600   10391 main.go:79] Completed successfully.":                     false,
		"ERROR: \"a\" -> \"b\" is forbidden by .import-restrictions":                            false,
	} {
		if got := complaint.MatchString("first\n" + line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestCommentsSilence(t *testing.T) {
	const file = "a.go"
	for line, want := range map[string]bool{
		"f() //nolint":                     true,
		"f() // nolint // because":         true,
		"f() //nolint:govet // because":    true,
		"f() //nolint:errcheck, printf":    true,
		"f() //nolint:all":                 true,
		"f() //nolint:errcheck":            false,
		"f() //nolintlint":                 false,
		"f() // this needs no nolint":      false,
		"f()":                              false,
		"//nolint:printf\nf()":             true,
		"g() //nolint:printf\nf()":         false,
		"//nolint:forbidigo // names\nf()": false,
	} {
		l := &linter{lines: map[string][]string{file: strings.Split(line, "\n")}}
		got, err := l.silenced(file, Problem{Line: 1 + strings.Count(line, "\n"), Check: "printf"})
		if err != nil || got != want {
			t.Errorf("%q: silenced %v, want %v: %v", line, got, want, err)
		}
	}
}

func TestSARIFHasEachCheckOnce(t *testing.T) {
	var out bytes.Buffer
	problems := []Problem{{File: "a.go", Line: 3, Column: 2, Check: "printf", Message: "m"}, {Check: "printf", Message: "n"}}
	if err := SARIF(&out, problems); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	run := document.Runs[0]
	if len(run.Tool.Driver.Rules) != 1 || len(run.Results) != 2 || len(run.Results[1].Locations) != 0 {
		t.Fatalf("SARIF %s", out.Bytes())
	}
	at := run.Results[0].Locations[0].PhysicalLocation
	if at.ArtifactLocation.URI != "a.go" || at.Region.StartLine != 3 || at.Region.StartColumn != 2 {
		t.Errorf("location %+v", at)
	}
}

func TestImportsAreCheckedAgainWhereTheyMayChange(t *testing.T) {
	t.Parallel()
	const file = "//go:build linux\n\npackage a\n\nimport \"fmt\"\n\nfunc A() { fmt.Print() }\n"
	for _, tt := range []struct {
		name, old, now string
		want           bool
	}{
		{"a.go", file, strings.Replace(file, "Print", "Println", 1), false},
		{"a.go", file, strings.Replace(file, `"fmt"`, `"log"`, 1), true},
		{"a.go", file, strings.Replace(file, "linux", "darwin", 1), true},
		{"a.go", "", file, true},
		{"a.go", file, "", true},
		{"a.go", file, strings.Replace(file, "import", "inport", 1), true},
		{"a.go", "package a\n", "package a\n\nfunc A() {}\n", false},
		{"a/.import-restrictions", "rules: []\n", "", true},
		{"go.mod", "module a\n", "module b\n", true},
		{"a.proto", "a", "b", false},
	} {
		if got := changeImports(tt.name, []byte(tt.old), []byte(tt.now)); got != tt.want {
			t.Errorf("%s, from %q to %q: %v", tt.name, tt.old, tt.now, got)
		}
	}
}
