package compile

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"slipway.build/pkg/make/relink"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/road/local"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/action/cachetest"
	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/tree/catalog"
)

// TestMain is also the linker.
func TestMain(m *testing.M) {
	relink.Main()
	os.Exit(m.Run())
}

// caching is a cache in memory that has no results of actions.
type caching struct{ *cachetest.Memory }

func (caching) Lookup(context.Context, string) *action.Result { return nil }

// A module has a program that go compiles, in a tree of its own.
type module struct {
	root    string
	road    road.Road
	options action.Options
}

// edits is a road that is so slow that an input is edited meanwhile.
type edits struct{ road.Road }

func (e edits) Compile(ctx context.Context, c road.Compilation, r action.Report) error {
	if err := e.Road.Compile(ctx, c, r); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.Road.(*local.Road).Root, "hello", "main.go"), []byte(hello+"\n// edited\n"), 0o644)
}

const hello = "package main\n\nvar version string\n\nfunc main() { println(version) }\n"

func newModule(t *testing.T) module {
	t.Helper()
	needs.Program(t, "go")
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell on Windows")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/m\n\ngo 1.24\n",
		"hello/main.go": hello,
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
	return module{root: root, road: &local.Road{Root: root, Pin: pin, Go: func(ctx context.Context,
		progress func(string)) (*toolchain.Go, error) {
		return toolchain.Find(ctx, pin, progress)
	}}}
}

// make makes the program of a version, and reports whether it was copied.
func (m module) make(t *testing.T, version string, cache action.Cache) (program []byte, copied bool) {
	t.Helper()
	g := &action.Graph{Root: m.root, State: "state"}
	c := Compiler{Root: m.root, Measured: g.Measured, Links: relink.Links{Folder: filepath.Join(m.root, "links")}}
	a, err := c.Action(m.road, Spec{
		ID: "compile hello", Batch: "compile", Output: "bin/hello", Inputs: []string{"go.mod", "hello/main.go"},
		Spec:   road.Spec{Module: ".", Platform: catalog.Platform{OS: "linux", Arch: "amd64"}, LDFlags: "-X main.version=" + version},
		Binary: road.Binary{Package: "./hello"},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Actions = []*action.Action{a}
	var steps []string
	o := m.options
	o.Cache = cache
	o.Events = func(e action.Event) {
		if e.Kind == action.Step {
			steps = append(steps, e.Text)
		}
	}
	err = g.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.ReadFile(filepath.Join(m.root, "bin", "hello")); err != nil {
		t.Fatal(err)
	}
	return program, slices.Contains(steps, "1 of 1 binaries differ only in the version from what was linked before")
}

const (
	first  = "v1.37.1+acme.20261126"
	second = "v1.37.1+acme.20261127"
	third  = "v1.37.1+acme.20261128"
	longer = second + ".dirty"
)

func TestAnotherVersionIsCopied(t *testing.T) {
	t.Parallel()
	m := newModule(t)
	memory := caching{cachetest.New()}
	if _, copied := m.make(t, first, memory); copied {
		t.Error("copied from nothing")
	}
	want, copied := m.make(t, second, nil)
	if !copied || !bytes.Contains(want, []byte(second)) {
		t.Errorf("copied %v", copied)
	}
	if _, copied := m.make(t, longer, nil); copied {
		t.Error("copied from a version of another length")
	}

	// Another machine takes it from the cache. What it makes without the cache has no part of that.
	other := newModule(t)
	if got, copied := other.make(t, second, memory); !copied || !bytes.Equal(got, want) {
		t.Errorf("copied %v from the cache, the same bytes: %v", copied, bytes.Equal(got, want))
	}
	if _, copied := other.make(t, third, nil); copied {
		t.Error("without a cache, a program was copied that a cache had a part in")
	}

	// A cache that has lost the program costs only time.
	for digest := range memory.Contents {
		memory.Contents[digest] = []byte("lost")
	}
	if got, copied := newModule(t).make(t, second, memory); copied || !bytes.Equal(got, want) {
		t.Errorf("copied %v, the same bytes: %v", copied, bytes.Equal(got, want))
	}
}

func TestWhatMustBeLinkedIsNotCopied(t *testing.T) {
	t.Parallel()
	m := newModule(t)
	plain := m.road
	m.road = edits{plain}
	m.make(t, first, nil)
	m.road = plain
	if err := os.WriteFile(filepath.Join(m.root, "hello", "main.go"), []byte(hello), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, copied := m.make(t, second, nil); copied {
		t.Error("what was linked while an input was edited was copied")
	}

	m.options.Audit = []string{"compile hello"}
	if _, copied := m.make(t, third, nil); copied {
		t.Error("what is made again to be compared was copied")
	}
	m.options.Audit = nil
	if _, copied := m.make(t, first, nil); !copied {
		t.Error("then it was not copied")
	}

	m.options.Program = action.Cached // slipway itself is from a cache
	if _, copied := m.make(t, second, caching{cachetest.New()}); !copied {
		t.Error("it was not copied by a slipway from a cache")
	}
	m.options.Program = action.Built
	if _, copied := m.make(t, third, nil); copied {
		t.Error("without a cache, what a slipway from a cache has made was copied")
	}
}
