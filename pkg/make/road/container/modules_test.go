package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
)

const goMod = `module example.com/cmd

go 1.26.0

require (
	example.com/Upper v1.0.0
	example.com/replaced v0.0.0
	example.com/folder v0.0.0
)

replace example.com/replaced => example.com/other v1.2.3

replace example.com/folder => ../fake/folder
`

const goSum = `example.com/Upper v1.0.0 h1:a=
example.com/Upper v1.0.0/go.mod h1:b=
example.com/other v1.2.3 h1:d=
example.com/other v1.2.3/go.mod h1:e=
example.com/graph v0.1.0/go.mod h1:c=
not a sum
`

func moduleTree(t *testing.T, mod string) *Road {
	t.Helper()
	r := &Road{Root: t.TempDir(), Modules: []string{"cmd"}}
	write(t, filepath.Join(r.Root, "cmd", "go.mod"), mod)
	write(t, filepath.Join(r.Root, "cmd", "go.sum"), goSum)
	return r
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestModulesReplacedByAFolderOutsideOfTheTreeAreRefused(t *testing.T) {
	t.Parallel()
	if err := moduleTree(t, goMod).checkModules(); err != nil {
		t.Error(err)
	}
	for _, folder := range []string{"../../patched", "/usr/src/patched"} {
		err := moduleTree(t, strings.Replace(goMod, "../fake/folder", folder, 1)).checkModules()
		var outside *OutsideError
		if !errors.As(err, &outside) || !strings.Contains(err.Error(), "go.mod:13: example.com/folder is replaced by "+folder) {
			t.Errorf("%s: error %v", folder, err)
		}
	}
}

func TestOnlyWhatIsMissingIsDownloaded(t *testing.T) {
	t.Parallel()
	r, cache := moduleTree(t, goMod), t.TempDir()
	// It downloads what the test says is missing, and leaves a mark.
	goroot := t.TempDir()
	mark := filepath.Join(goroot, "ran")
	write(t, filepath.Join(goroot, "bin", "go"),
		"#!/bin/sh\necho \"$@\" >>'"+mark+"'\necho zip >'"+cache+"/cache/download/example.com/other/@v/v1.2.3.zip'\n")
	if err := os.Chmod(filepath.Join(goroot, "bin", "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Go = func(context.Context, func(string)) (*toolchain.Go, error) {
		return &toolchain.Go{Root: goroot, ModCache: cache}, nil
	}
	there := []string{
		"example.com/!upper/@v/v1.0.0.mod", "example.com/!upper/@v/v1.0.0.zip", "example.com/other/@v/v1.2.3.mod",
		"example.com/graph/@v/v0.1.0.mod",
	}
	for _, name := range there {
		write(t, filepath.Join(cache, "cache", "download", filepath.FromSlash(name)), "there")
	}
	for range 2 {
		d, err := r.downloads(t.Context(), silent)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"example.com/!upper/@v/v1.0.0.mod", "example.com/!upper/@v/v1.0.0.zip", "example.com/graph/@v/v0.1.0.mod",
			"example.com/other/@v/v1.2.3.mod", "example.com/other/@v/v1.2.3.zip",
		}
		if diff := cmp.Diff(want, d.files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
	if ran, err := os.ReadFile(mark); err != nil || string(ran) != "mod download -json example.com/other@v1.2.3\n" {
		t.Errorf("the Go command ran %q (%v), want once", ran, err)
	}
}

func TestGeneratedModFileIsNamedByContent(t *testing.T) {
	t.Parallel()
	r := &Road{Root: t.TempDir()}
	if g, err := r.generatedFor(road.Spec{Module: "cmd"}); g != nil || err != nil {
		t.Errorf("without a generated go.mod: %v, %v", g, err)
	}
	spec := road.Spec{Module: "cmd", ModFile: "_output/patched/go.mod"}
	if _, err := r.generatedFor(spec); err == nil {
		t.Error("a missing file is no error")
	}
	at := func(sum string) string {
		t.Helper()
		write(t, filepath.Join(r.Root, "_output", "patched", "go.mod"), "module example.com/cmd\n")
		write(t, filepath.Join(r.Root, "_output", "patched", "go.sum"), sum)
		g, err := r.generatedFor(spec)
		if err != nil {
			t.Fatal(err)
		}
		if g.proxy != filepath.Join(r.Root, "_output", "patched", "proxy") {
			t.Errorf("proxy %s", g.proxy)
		}
		return g.modFile()
	}
	one, other := at("a\n"), at("b\n")
	if one == other || at("a\n") != one || !strings.HasPrefix(one, "/modules/slipway/") || !strings.HasSuffix(one, "/go.mod") {
		t.Errorf("%s and %s", one, other)
	}
}
