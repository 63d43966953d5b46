package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/catalog"
)

func TestRecipeNamesPathsInDebugBuildsOnly(t *testing.T) {
	t.Parallel()
	r := &Road{Root: "/src/tree", Pin: toolchain.Pin{Version: "go1.26.8"}, Go: func(context.Context, func(string)) (*toolchain.Go, error) {
		return &toolchain.Go{Root: "/usr/go", ModCache: "/modules"}, nil
	}}
	spec := road.Spec{Platform: catalog.Platform{OS: "linux", Arch: "amd64"}}
	paths := []string{`Paths[0]="/src/tree"`, `Paths[1]="GOROOT=/usr/go"`, `Paths[2]="GOMODCACHE=/modules"`}
	for _, path := range paths {
		if recipe := r.Recipe(spec, road.Binary{}); slices.Contains(recipe, path) {
			t.Errorf("recipe %q", recipe)
		}
	}
	spec.Options.Debug = true
	for _, path := range paths {
		if recipe := r.Recipe(spec, road.Binary{}); !slices.Contains(recipe, path) {
			t.Errorf("recipe %q of a debug build, whose bytes hold %s", recipe, path)
		}
	}
}

func TestRecipeOfAReleaseNeedsNoGo(t *testing.T) {
	t.Parallel()
	r := &Road{Go: func(context.Context, func(string)) (*toolchain.Go, error) {
		t.Error("the recipe looks for the pinned Go")
		return nil, errors.New("unreachable")
	}}
	r.Recipe(road.Spec{}, road.Binary{})
	r.Go = func(context.Context, func(string)) (*toolchain.Go, error) { return nil, errors.New("unreachable") }
	if recipe := r.Recipe(road.Spec{Options: road.Options{Debug: true}}, road.Binary{}); !slices.Contains(recipe, `Paths[1]="no Go"`) {
		t.Errorf("recipe %q", recipe)
	}
}

func TestRecipeHoldsEveryField(t *testing.T) {
	t.Parallel()
	r := &Road{Pin: toolchain.Pin{Version: "go1.26.8"}, Go: func(context.Context, func(string)) (*toolchain.Go, error) { return &toolchain.Go{}, nil }}
	type input struct {
		Spec   road.Spec
		Binary road.Binary
	}
	recipetest.EachFieldOf(t, input{}, func(in input) []string { return r.Recipe(in.Spec, in.Binary) })
}

func TestCommandsAreThoseOfACompile(t *testing.T) {
	t.Parallel()
	r := &Road{Root: "/src/tree", Pin: toolchain.Pin{Version: "go1.26.8"}}
	got := r.Commands(road.Compilation{
		Spec: road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "arm64"}, LDFlags: "-X=a.b=c", Options: road.Options{GoFlags: "-p=2"}},
		Targets: []road.Target{
			{Binary: road.Binary{Package: "./kubectl"}, Output: "/src/tree/_output/local/bin/linux/arm64/kubectl"},
			{Binary: road.Binary{Package: "example.com/e2e", Test: true}, Output: "/src/tree/_output/local/bin/linux/arm64/e2e.test"},
		},
	})
	flags := " -v -buildvcs=false -mod=readonly -trimpath '-ldflags=-s -w -X=a.b=c' -o /src/tree/_output/local/bin/linux/arm64/ "
	for i, want := range []string{"go build" + flags + "./kubectl", "go test -c -vet=off" + flags + "example.com/e2e"} {
		const start = "cd /src/tree/cmd && env "
		if len(got) != 2 || !strings.HasPrefix(got[i], start) || !strings.HasSuffix(got[i], " GOTOOLCHAIN=go1.26.8 GOOS=linux GOARCH=arm64 GOFLAGS=-p=2 "+want) ||
			!strings.Contains(got[i], " CGO_ENABLED=0 ") {
			t.Errorf("commands %q, want %q", got, want)
		}
	}
}

// silent is a Report that ignores everything.
type silent struct{}

func (silent) By(string)                     {}
func (silent) Counts(action.Unit)            {}
func (silent) Progress(int64, int64, string) {}
func (silent) Output(string)                 {}
func (silent) Step(string, time.Duration)    {}
func (silent) Memory(int64)                  {}

func TestCompileNeedsNoPreviousOutput(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the Go is a shell script")
	}
	goroot, scratch := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(goroot, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The script writes the binary into the folder that -o names.
	const script = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo compiled >"$2/kubectl"
`
	childtest.Script(t, filepath.Join(goroot, "bin", "go"), script)
	r := &Road{Root: t.TempDir(), Go: func(context.Context, func(string)) (*toolchain.Go, error) {
		return &toolchain.Go{Root: goroot}, nil
	}}
	output := filepath.Join(scratch, "output")
	err := r.Compile(t.Context(), road.Compilation{
		Spec: road.Spec{Module: ".", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}}, Scratch: scratch,
		// The previous output cannot be linked, as on file systems without hard links.
		Targets: []road.Target{{Binary: road.Binary{Package: "./kubectl"}, Output: output, Previous: filepath.Join(scratch, "missing")}},
	}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(output); err != nil || string(data) != "compiled\n" {
		t.Errorf("output %q, %v", data, err)
	}
}
