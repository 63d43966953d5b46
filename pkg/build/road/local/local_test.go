package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/tree/catalog"
)

func TestRecipeNamesPathsInDebugBuildsOnly(t *testing.T) {
	t.Parallel()
	r := &Road{Pin: toolchain.Pin{Version: "go1.26.8"}, Go: func(context.Context, func(string)) (*toolchain.Go, error) {
		return &toolchain.Go{Root: "/usr/go", ModCache: "/modules"}, nil
	}}
	c := road.Compilation{Root: "/src/tree", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}}
	paths := []string{"/src/tree", "GOROOT=/usr/go", "GOMODCACHE=/modules"}
	for _, path := range paths {
		if recipe := r.Recipe(c); slices.Contains(recipe, path) {
			t.Errorf("recipe %q", recipe)
		}
	}
	c.Options.Debug = true
	for _, path := range paths {
		if recipe := r.Recipe(c); !slices.Contains(recipe, path) {
			t.Errorf("recipe %q of a debug build, in whose bytes %s is", recipe, path)
		}
	}
}

func TestRecipeOfAReleaseNeedsNoGo(t *testing.T) {
	t.Parallel()
	r := &Road{Go: func(context.Context, func(string)) (*toolchain.Go, error) {
		t.Error("the pinned Go was asked for")
		return nil, errors.New("unreachable")
	}}
	r.Recipe(road.Compilation{})
	r.Go = func(context.Context, func(string)) (*toolchain.Go, error) { return nil, errors.New("unreachable") }
	if recipe := r.Recipe(road.Compilation{Options: road.Options{Debug: true}}); !slices.Contains(recipe, "no Go") {
		t.Errorf("recipe %q", recipe)
	}
}

// silent is a Report to nobody.
type silent struct{}

func (silent) By(string)                     {}
func (silent) Progress(int64, int64, string) {}
func (silent) Output(string)                 {}
func (silent) Step(string, time.Duration)    {}
func (silent) Memory(int64)                  {}

func TestCompileGoesOnWithoutThePreviousOutput(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the Go is a shell script")
	}
	goroot, scratch := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(goroot, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	// It writes what it is asked for into the folder behind -o.
	const script = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo compiled >"$2/kubectl"
`
	if err := os.WriteFile(filepath.Join(goroot, "bin", "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &Road{Go: func(context.Context, func(string)) (*toolchain.Go, error) { return &toolchain.Go{Root: goroot}, nil }}
	output := filepath.Join(scratch, "output")
	err := r.Compile(t.Context(), road.Compilation{
		Root: t.TempDir(), Module: ".", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}, Scratch: scratch,
		// There is nothing to link, as where there are no hard links.
		Targets: []road.Target{{Package: "./kubectl", Output: output, Previous: filepath.Join(scratch, "missing")}},
	}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(output); err != nil || string(data) != "compiled\n" {
		t.Errorf("output %q, %v", data, err)
	}
}
