package bazel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// A fake is a shell script that runs in place of Bazel, with its arguments.
type fake string

func (f fake) String() string { return "a fake" }

func (f fake) Command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", append([]string{"-euc", string(f), "bazel"}, args...)...)
}

// A recorder keeps what is reported.
type recorder struct {
	by       string
	lines    []string
	progress []string
	unit     action.Unit
}

func (r *recorder) event(e action.Event) {
	switch r.by = cmp.Or(e.By, r.by); e.Kind {
	case action.Progress:
		r.progress, r.unit = append(r.progress, fmt.Sprintf("%d of %d %s", e.Done, e.Total, e.Text)), cmp.Or(e.Unit, r.unit)
	case action.Output:
		r.lines = append(r.lines, e.Text)
	}
}

func notStale(context.Context) (string, error) { return "", nil }

// compile compiles kubectl and kube-log-runner with a fake, in a tree in root.
func compile(t *testing.T, script string) (root string, c road.Compilation, rep *recorder, err error) {
	t.Helper()
	root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "cmd"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile("../../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "cmd", name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	binary := program(t)
	c = road.Compilation{
		Spec: road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "arm64"}}, Scratch: t.TempDir(),
		Targets: []road.Target{
			{Binary: road.Binary{Package: "./kubectl"}, Output: filepath.Join(root, "kubectl")},
			{Binary: road.Binary{Package: "k8s.io/component-base/logs/kube-log-runner"}, Output: filepath.Join(root, "kube-log-runner")},
		},
	}
	rep = &recorder{}
	script = `for a; do case $a in --build_event_json_file=*) events=${a#*=};; esac; done
set_of() { echo '{"id":{"namedSet":{"id":"'$1'"}},"namedSetOfFiles":{"files":[{"name":"x","uri":"file://'$2'"}]}}'; }
made() { echo '{"id":{"targetCompleted":{"label":"'$1'"}},"completed":{"success":true,"outputGroup":[{"name":"default","fileSets":[{"id":"'$2'"}]}]}}'; }
self=` + binary + "\n" + script
	find := func(context.Context, func(string)) (Bazel, error) { return fake(script), nil }
	r := &Road{Root: root, Version: runtime.Version(), Stale: notStale, Bazel: find}
	err = r.Compile(t.Context(), c, rep.event)
	return root, c, rep, err
}

func TestCompileTakesWhatBazelMade(t *testing.T) {
	t.Parallel()
	_, c, rep, err := compile(t, `
echo "INFO: Analyzed 2 targets" >&2
echo "[1,188 / 1,190] GoLink cmd/kubectl/kubectl_/kubectl; 5s linux-sandbox" >&2
echo "cmd/kubectl/main.go:3: something to report" >&2
printf '%s ' "$@" >&2
{
	echo '{"id":{"started":{}},"started":{"uuid":"u"}}'
	set_of 0 $self; made //cmd/kubectl:kubectl 0
	set_of 1 $self; made //cmd:kube-log-runner 1
} >$events`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range c.Targets {
		if got, err := os.ReadFile(target.Output); err != nil || string(got) != string(want) {
			t.Errorf("%s: %v, or other bytes", target.Output, err)
		}
	}
	args := rep.lines[len(rep.lines)-1]
	for _, want := range []string{"build --config=release ", "--platforms=//build/bazel/platforms:linux_arm64 ",
		"-- //cmd/kubectl:kubectl //cmd:kube-log-runner"} {
		if !strings.Contains(args, want) {
			t.Errorf("Bazel was run with %s, without %s", args, want)
		}
	}
	if rep.unit != action.Steps {
		t.Errorf("the progress counts %q", rep.unit)
	}
	if want := "1188 of 1190 GoLink cmd/kubectl/kubectl_/kubectl; 5s linux-sandbox"; !slices.Contains(rep.progress, want) {
		t.Errorf("the progress is %q", rep.progress)
	}
	if rep.lines[0] != "cmd/kubectl/main.go:3: something to report" {
		t.Errorf("the user sees %q", rep.lines)
	}
	if rep.by != "a fake: bazel build" {
		t.Errorf("it was made by %q", rep.by)
	}
}

func TestCompileFailsWhereBazelDoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, want string }{
		"a compile error":            {"echo main.go:1: wrong >&2; exit 1", "bazel build: exit status 1"},
		"a remote server that fails": {"exit 34", "run the same command again"},
		"a cache that lost results":  {"exit 39", "run the same command again"},
		"an unknown option":          {"exit 2", "look at .bazelrc"},
		"no events":                  {": >$events", "Bazel made 0 files for it"},
		"one target only": {"{ set_of 0 $self; made //cmd/kubectl:kubectl 0; } >$events",
			"//cmd:kube-log-runner: Bazel made 0 files for it"},
		"a file elsewhere":      {`{ echo '{"id":{"namedSet":{"id":"0"}},"namedSetOfFiles":{"files":[{"uri":"bytestream://h/b"}]}}'; made //cmd/kubectl:kubectl 0; } >$events`, "not a local file"},
		"events that break off": {`printf '{"id":{"namedSet"' >$events`, "unexpected EOF"},
		"something without Go": {"{ set_of 0 /bin/sh; made //cmd/kubectl:kubectl 0; made //cmd:kube-log-runner 0; } >$events",
			"//cmd/kubectl:kubectl: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, c, _, err := compile(t, test.script)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
			for _, target := range c.Targets {
				if _, err := os.Stat(target.Output); err == nil && name != "one target only" {
					t.Errorf("%s is there", target.Output)
				}
			}
		})
	}
}

func TestModulesMustBeTheSelectedOnes(t *testing.T) {
	t.Parallel()
	selected, err := module.Load("../../../..", ".")
	if err != nil {
		t.Fatal(err)
	}
	const linked = "golang.org/x/mod"
	right, _ := selected.Require(linked)
	if right.Version == "" || right.Sum == "" {
		t.Fatalf("go.mod and go.sum pin %q of %s", right, linked)
	}
	b := module.Binary{Go: "go1.2.3", Modules: []module.Dependency{right.Dependency}}
	if err := check(b, selected, "go1.2.3"); err != nil {
		t.Errorf("the module is the right one, and the error is %v", err)
	}
	requiring := func(version, sum string, replace module.Version) *module.Module {
		d := module.Dependency{Path: linked, Version: version, Sum: sum, Replace: replace}
		return &module.Module{Path: "example.com/cmd", Requires: []module.Requirement{{Dependency: d}}}
	}
	fails := func(m *module.Module, goVersion, want string) {
		t.Helper()
		if err := check(b, m, goVersion); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
	none := module.Version{}
	fails(selected, "go1.2.4", "compiled it with go1.2.3, but release.yaml pins go1.2.4")
	fails(&module.Module{Path: "example.com/cmd"}, "go1.2.3", "cmd/go.mod does not name")
	fails(requiring("v0.0.1", right.Sum, none), "go1.2.3", "linked golang.org/x/mod "+right.Version+", but cmd/go.mod selects v0.0.1")
	fails(requiring(right.Version, "h1:other", none), "go1.2.3", "with the sum "+right.Sum+", but cmd/go.sum has h1:other")
	fails(requiring(right.Version, "", none), "go1.2.3", "cmd/go.sum has no sum of golang.org/x/mod")
	folder := module.Version{Path: "../mod"}
	fails(requiring(right.Version, right.Sum, folder), "go1.2.3", "but cmd/go.mod replaces it with ../mod")
	b.Modules[0] = module.Dependency{Path: linked, Version: "v0.0.1", Replace: folder}
	if err := check(b, requiring("v0.0.1", "", folder), "go1.2.3"); err != nil {
		t.Errorf("a module replaced by a folder: error %v", err)
	}
	b.Modules = nil
	fails(selected, "go1.2.3", "does not say which modules are in it")
}

func TestBinariesOfOtherBytesAreRefusedByName(t *testing.T) {
	t.Parallel()
	const ours = "action/main/content/content"
	with := func(settings ...string) module.Binary {
		b := module.Binary{Settings: map[string]string{"CGO_ENABLED": "0", "-buildmode": "exe", "-tags": "a,b"}}
		for s := range slices.Chunk(settings, 2) {
			b.Settings[s[0]] = s[1]
		}
		return b
	}
	tags := []string{"a", "b"}
	if err := checkBuild(with(), ours, tags); err != nil {
		t.Error(err)
	}
	for what, b := range map[string]module.Binary{
		"cgo": with("CGO_ENABLED", "1"), "race detection": with("-race", "true"), "coverage": with("-cover", "true"),
		"a sanitizer": with("-msan", "true"),
		"GOAMD64=v3":  with("GOAMD64", "v3"), "GOEXPERIMENT=arenas": with("GOEXPERIMENT", "arenas"),
		"the build mode pie": with("-buildmode", "pie"), "the build tags a": with("-tags", "a"),
	} {
		if err := checkBuild(b, ours, tags); !badrequest.Is(err) || !strings.HasPrefix(err.Error(), what+": not supported by the bazel road: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := checkBuild(with(), "redacted", tags); !badrequest.Is(err) || !strings.Contains(err.Error(), "other flags") {
		t.Errorf("a build ID of rules_go: %v", err)
	}
}

func TestOptionsOfTheGoCommandAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []road.Options{{Debug: true}, {GoFlags: "-race"}, {LDFlags: "-w"}} {
		if err := road.CheckOptions(&Road{}, o); !badrequest.Is(err) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := road.CheckOptions(&Road{}, road.Options{}); err != nil {
		t.Error(err)
	}
}

// program returns a Go binary with build information that names modules, one of them in the toolchain's own go.mod.
var program = func() func(t *testing.T) string {
	var once sync.Once
	var file string
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() {
			dir, err := os.MkdirTemp("", "bazel-road-")
			if err != nil {
				t.Fatal(err)
			}
			made = dir
			file = filepath.Join(dir, "program")
			build := exec.Command("go", "build", "-o", file, "golang.org/x/tools/cmd/stringer")
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			out, err := build.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
		return file
	}
}()

var made string // folder of the program

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(made)
	os.Exit(code)
}

func TestMadeChecksBinariesLikeTheBazelRoad(t *testing.T) {
	t.Parallel()
	root, c, _, err := compile(t, `{ set_of 0 $self; made //cmd/kubectl:kubectl 0; made //cmd:kube-log-runner 0; } >$events`)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		files map[string]string
		goIs  string
		want  string
	}{
		"all": {map[string]string{"//cmd/kubectl:kubectl": program(t), "//cmd:kube-log-runner": program(t)}, runtime.Version(), ""},
		"one": {map[string]string{"//cmd/kubectl:kubectl": program(t)}, runtime.Version(),
			"//cmd:kube-log-runner: the release holds it, and Bazel did not make it"},
		"another Go": {map[string]string{"//cmd/kubectl:kubectl": program(t), "//cmd:kube-log-runner": program(t)}, "go1.2.3",
			"release.yaml pins go1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			into := c
			into.Targets = slices.Clone(c.Targets)
			dir := t.TempDir()
			for i := range into.Targets {
				into.Targets[i].Output = filepath.Join(dir, fmt.Sprint(i))
			}
			err := (&Made{Root: root, Version: test.goIs, Files: test.files}).Compile(t.Context(), into, (&recorder{}).event)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v, want %q in it", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range into.Targets {
				if info, err := os.Stat(target.Output); err != nil || info.Mode().Perm()&0o100 == 0 {
					t.Errorf("%s: %v, %v", target.Output, info, err)
				}
			}
		})
	}
}

func TestTestBinariesAreRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []road.Road{&Road{}, &Made{}} {
		err := road.CheckBinary(r, road.Binary{Package: "k8s.io/kubernetes/test/e2e", Test: true})
		var unsupported *road.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != "e2e.test" {
			t.Errorf("%T: error %v", r, err)
		}
		if err := road.CheckBinary(r, road.Binary{Package: "./kubectl"}); err != nil {
			t.Error(err)
		}
	}
}

func TestRecipesHoldEveryField(t *testing.T) {
	t.Parallel()
	type input struct {
		Spec   road.Spec
		Binary road.Binary
	}
	for _, r := range []road.Road{&Road{}, &Made{}} {
		recipetest.EachFieldOf(t, input{}, func(in input) []string { return r.Recipe(in.Spec, in.Binary) })
	}
	type made struct {
		Version string
		Files   map[string]string
	}
	recipetest.EachFieldOf(t, made{}, func(m made) []string {
		return (&Made{Version: m.Version, Files: m.Files}).Recipe(road.Spec{}, road.Binary{})
	})
}

func TestCommandsAreThoseOfACompile(t *testing.T) {
	t.Parallel()
	got := (&Road{Root: "/src/tree"}).Commands(road.Compilation{
		Spec:    road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "arm64"}},
		Targets: []road.Target{{Binary: road.Binary{Package: "./kubectl"}}},
	})
	const want = "cd /src/tree && bazel build --config=release --platforms=//build/bazel/platforms:linux_arm64 -- //cmd/kubectl:kubectl"
	if len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestConfigOfOtherPatchesIsStale(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const mod = "module example.com/cmd\n\ngo 1.26.0\n\nrequire example.com/a v1.0.0\n"
	put("cmd/go.mod", mod)
	put("patched/go.mod", mod+"\nreplace example.com/a => example.com/a v1.0.0-patched.p1.c1\n")
	config := func(version string) string {
		return "MODULES = {\n    \"example.com/a\": struct(name = \"a\", version = \"" + version + "\"),\n}\n"
	}
	plain, patched := road.Spec{Module: "cmd"}, road.Spec{Module: "cmd", ModFile: "patched/go.mod"}
	for _, test := range []struct {
		spec    road.Spec
		version string
		stale   bool
	}{
		{plain, "v1.0.0", false},
		{plain, "v1.0.0-patched.p1.c1", true},
		{patched, "v1.0.0", true},
		{patched, "v1.0.0-patched.p2.c2", true},
		{patched, "v1.0.0-patched.p1.c1", false},
	} {
		put(configFile, config(test.version))
		if err := CheckConfig(root, test.spec); errors.Is(err, ErrStale) != test.stale {
			t.Errorf("%q with %s: %v", test.spec.ModFile, test.version, err)
		}
	}
}

func TestStaleFilesAreRefusedBeforeBazelRuns(t *testing.T) {
	t.Parallel()
	r := &Road{Root: t.TempDir(), Bazel: func(context.Context, func(string)) (Bazel, error) {
		t.Error("it looks for Bazel")
		return nil, errors.New("none")
	}}
	r.Stale = func(context.Context) (string, error) { return "build/bazel/generated/config.bzl", nil }
	err := r.Compile(t.Context(), road.Compilation{}, (&recorder{}).event)
	if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "config.bzl") {
		t.Errorf("error %v", err)
	}
	unknown := errors.New("no go command")
	r.Stale = func(context.Context) (string, error) { return "", unknown }
	if err := r.Compile(t.Context(), road.Compilation{}, (&recorder{}).event); !errors.Is(err, unknown) {
		t.Errorf("error %v", err)
	}
}

// Results of a user's remote cache are those of others.
func TestSettingsOfTheUserMayBorrow(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	r := &Road{Root: t.TempDir()}
	_, none := os.Stat("/etc/bazel.bazelrc") // of this machine
	if got := r.Borrows(); got != (none == nil) {
		t.Errorf("without settings of the tree and the user: %t", got)
	}
	for _, file := range []string{filepath.Join(r.Root, "user.bazelrc"), filepath.Join(home, ".bazelrc")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if !r.Borrows() {
			t.Errorf("%s does not count", file)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Where build IDs are not known, what configures Bazel decides bytes.
func TestConfigurationCountsForAnUnknownGo(t *testing.T) {
	t.Parallel()
	r := &Road{Root: t.TempDir(), Version: "go1.99.0"}
	file := filepath.Join(r.Root, "build", "bazel", "patches", "rules_go.patch")
	before := r.Recipe(road.Spec{}, road.Binary{})
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("a patch"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, r.Recipe(road.Spec{}, road.Binary{})) {
		t.Error("a patch of rules_go changes nothing")
	}
}
