package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/catalog"
)

// TestMain is also the linker.
func TestMain(m *testing.M) {
	relink.Main()
	os.Exit(m.Run())
}

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
	r := &Road{Pin: toolchain.Pin{Version: "go1.26.8"}, Go: func(context.Context,
		func(string)) (*toolchain.Go, error) {
		return &toolchain.Go{}, nil
	}}
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
		Spec: road.Spec{Module: "cmd", Platform: catalog.Platform{OS: "linux", Arch: "arm64"}, LDFlags: "-X=a.b=c",
			Options: road.Options{GoFlags: "-p=2"}},
		Targets: []road.Target{
			{Binary: road.Binary{Package: "./kubectl"}, Output: "/src/tree/_output/local/bin/linux/arm64/kubectl"},
			{Binary: road.Binary{Package: "example.com/e2e", Test: true}, Output: "/src/tree/_output/local/bin/linux/arm64/e2e.test"},
		},
	})
	flags := " -v -buildvcs=false -mod=readonly -trimpath '-ldflags=-s -w -X=a.b=c' -o /src/tree/_output/local/bin/linux/arm64/ "
	for i, want := range []string{"go build" + flags + "./kubectl", "go test -c -vet=off" + flags + "example.com/e2e"} {
		const start = "cd /src/tree/cmd && env "
		if len(got) != 2 || !strings.HasPrefix(got[i], start) || !strings.HasSuffix(got[i],
			" GOTOOLCHAIN=go1.26.8 GOOS=linux GOARCH=arm64 GOFLAGS=-p=2 "+want) ||
			!strings.Contains(got[i], " CGO_ENABLED=0 ") {
			t.Errorf("commands %q, want %q", got, want)
		}
	}
}

// silent is a Report that ignores everything.
func silent(action.Event) {}

// The binary must be that of the command line that users are shown, which links as usual.
func TestRecordedLinkIsTheUsualOne(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell on Windows")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.24\n",
		"hello/main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pin := toolchain.Pin{Version: runtime.Version()}
	r := &Road{Root: root, Pin: pin, Go: func(ctx context.Context, progress func(string)) (*toolchain.Go, error) {
		return toolchain.Find(ctx, pin, progress)
	}}
	out := t.TempDir()
	c := road.Compilation{
		Spec:    road.Spec{Module: ".", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}, LDFlags: "-X main.version=v1.37.1+acme.20261126"},
		Scratch: t.TempDir(),
		Targets: []road.Target{{Binary: road.Binary{Package: "./hello"}, Output: filepath.Join(out, "hello"),
			Record: filepath.Join(out, "record")}},
	}
	if err := r.Compile(t.Context(), c, silent); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(c.Targets[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.Targets[0].Output); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("sh", "-c", r.Commands(c)[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if usual, err := os.ReadFile(c.Targets[0].Output); err != nil || !bytes.Equal(got, usual) {
		t.Errorf("not the binary of %s (%v)", r.Commands(c)[0], err)
	}
	if _, err := os.Stat(c.Targets[0].Record); err != nil {
		t.Error(err)
	}
}

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
	}, silent)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(output); err != nil || string(data) != "compiled\n" {
		t.Errorf("output %q, %v", data, err)
	}
}
