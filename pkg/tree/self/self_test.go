package self

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/worktree/gittest"
)

const selected = "example.com/a v1.2.0 h1:a=\nexample.com/windows v1.0.0 h1:w=\n"

var libraries = []module.Dependency{
	{Path: "example.com/a", Version: "v1.2.0", Sum: "h1:a="}, {Path: "example.com/windows", Version: "v1.0.0", Sum: "h1:w="},
}

// program returns the build information of a program of a distribution.
func program(deps ...*debug.Module) *debug.BuildInfo {
	return &debug.BuildInfo{Path: "command-line-arguments", Deps: append(deps,
		&debug.Module{Path: "acme.example/targets", Version: "v1.0.0", Sum: "h1:t="},
		&debug.Module{Path: "acme.example/tools", Version: "(devel)"})}
}

var (
	a       = &debug.Module{Path: "example.com/a", Version: "v1.2.0", Sum: "h1:a="}
	slipway = &debug.Module{Path: Module, Version: "v0.2.0", Sum: "h1:s="}
)

func pinned(path, version, sum string) module.Pinned {
	return module.Pinned{Version: module.Version{Path: path, Version: version}, Sum: sum}
}

func TestAVersionIsNamedByItsSum(t *testing.T) {
	t.Parallel()
	fork := &debug.Module{Path: Module, Version: "v0.2.0",
		Replace: &debug.Module{Path: "acme.example/slipway", Version: "v0.2.1", Sum: "h1:f="}}
	for name, tt := range map[string]struct {
		info *debug.BuildInfo
		want Slipway
	}{
		"compiled targets": {program(a, slipway), Slipway{Module: pinned(Module, "v0.2.0", "h1:s=")}},
		"the command":      {&debug.BuildInfo{Main: *slipway, Deps: []*debug.Module{a}}, Slipway{Module: pinned(Module, "v0.2.0", "h1:s=")}},
		"a fork": {program(a, fork),
			Slipway{Module: pinned("acme.example/slipway", "v0.2.1", "h1:f="), Replaces: Module + "@v0.2.0"}},
	} {
		tt.want.Linked = libraries
		got, err := read(t.Context(), tt.info, selected, t.TempDir(), os.Getenv)
		if diff := cmp.Diff(&tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v\n%s", name, err, diff)
		}
	}
}

func TestAnotherSelectionIsRefused(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]*debug.Module{
		"go.mod selects example.com/a v1.3.0, and slipway.build@v0.2.0 is made with v1.2.0: ": {Path: "example.com/a",
			Version: "v1.3.0", Sum: "h1:b="},
		"selects example.com/a v1.2.0 h1:c=, and slipway.build@v0.2.0 is made with v1.2.0 h1:a=: ": {Path: "example.com/a",
			Version: "v1.2.0", Sum: "h1:c="},
		"selects example.com/a v1.2.0 => ../a, and slipway.build@v0.2.0 is made with v1.2.0: ": {Path: "example.com/a",
			Version: "v1.2.0", Replace: &debug.Module{Path: "../a", Version: "(devel)"}},
	} {
		_, err := read(t.Context(), program(got, slipway), selected, t.TempDir(), os.Getenv)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestACheckoutIsNamedByItsCommitAndFiles(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("go.mod", "module slipway.build\n")
	r.Commit()
	commit := r.Git("rev-parse", "HEAD")
	own := &debug.BuildInfo{Main: debug.Module{Path: Module, Version: "(devel)"}}
	get := func(info *debug.BuildInfo, root string) Slipway {
		t.Helper()
		s, err := read(t.Context(), info, selected, root, r.Env())
		if err != nil {
			t.Fatal(err)
		}
		return *s
	}
	for name, info := range map[string]*debug.BuildInfo{"the command": own, "compiled targets": program(a, &own.Main), "Bazel's": {}} {
		if diff := cmp.Diff(Slipway{Folder: "."}, get(info, r.Dir)); diff != "" {
			t.Errorf("%s in its own tree:\n%s", name, diff)
		}
	}

	other := filepath.Join(filepath.Dir(r.Dir), "other")
	stamped := &debug.BuildInfo{Main: own.Main, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123"},
		{Key: "vcs.modified", Value: "true"}}}
	if diff := cmp.Diff(Slipway{Commit: "0123", Dirty: true}, get(stamped, other)); diff != "" {
		t.Errorf("in another tree:\n%s", diff)
	}

	replaced := program(a, &debug.Module{Path: Module, Version: "v0.0.0", Replace: &debug.Module{Path: "../tree", Version: "(devel)"}})
	clean := get(replaced, other)
	want := Slipway{Linked: libraries, Folder: "../tree", Commit: commit, Tree: clean.Tree}
	if diff := cmp.Diff(want, clean); diff != "" || len(clean.Tree) != 64 {
		t.Errorf("a folder in place of the module: tree %q\n%s", clean.Tree, diff)
	}
	r.Write("main.go", "package main\n")
	if dirty := get(replaced, other); !dirty.Dirty || dirty.Tree == clean.Tree {
		t.Errorf("edited: %+v, before: %+v", dirty, clean)
	}
	gone := program(&debug.Module{Path: Module, Version: "v0.0.0", Replace: &debug.Module{Path: "../gone", Version: "(devel)"}})
	_, err := read(t.Context(), gone, selected, other, r.Env())
	if err == nil || !strings.Contains(err.Error(), "go.mod replaces slipway.build by a folder: ") {
		t.Errorf("no such folder: error %v", err)
	}
}

func TestOutsideIsWhatTheCommitLacks(t *testing.T) {
	t.Parallel()
	for replace, want := range map[string]string{
		"": "", "replace slipway.build => ./slipway\n": "", "replace slipway.build => acme.example/slipway v0.2.1\n": "",
		"replace slipway.build => ../slipway\n": "../slipway", "replace slipway.build => /src/slipway\n": "/src/slipway",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module acme.example/kubernetes\n\n"+replace), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := Outside(root); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", replace, got, err, want)
		}
	}
	if got, err := Outside(t.TempDir()); got != "" || err != nil {
		t.Errorf("without go.mod: %q, %v", got, err)
	}
}
