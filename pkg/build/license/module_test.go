package license

import (
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	var (
		own = debug.Module{Path: "slipway.build/cmd", Version: "(devel)"}
		a   = &debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"}
		b   = &debug.Module{Path: "github.com/Big/B", Version: "v2.0.0+incompatible", Sum: "h1:b"}
	)
	for name, tc := range map[string]struct {
		infos []*debug.BuildInfo
		want  []Module
	}{
		"sorted, each once, without the working folder's": {
			infos: []*debug.BuildInfo{
				{Main: own, Deps: []*debug.Module{b}},
				{Main: own, Deps: []*debug.Module{a, b}},
			},
			want: []Module{
				{"example.com/a", "v1.0.0", "example.com/a", ""},
				{"github.com/Big/B", "v2.0.0+incompatible", "github.com/Big/B", ""},
			},
		},
		"a working folder with a version from version control": {
			infos: []*debug.BuildInfo{{Main: debug.Module{Path: "slipway.build/cmd", Version: "v1.2.3"}}},
			want:  []Module{},
		},
		"a dependency's main package": {
			infos: []*debug.BuildInfo{{Main: *a}},
			want:  []Module{{"example.com/a", "v1.0.0", "example.com/a", ""}},
		},
		"a dependency's main package in a folder": {
			infos: []*debug.BuildInfo{{Main: debug.Module{Path: "example.com/a", Version: "v1.0.0",
				Replace: &debug.Module{Path: "../patched", Version: "(devel)"}}}},
			want: []Module{{"example.com/a", "", "", "../patched"}},
		},
		"replaced by itself, a fork, folders": {
			infos: []*debug.BuildInfo{{Main: own, Deps: []*debug.Module{
				{Path: "x.test/abs", Version: "v1.0.0", Replace: &debug.Module{Path: "/src/abs"}},
				{Path: "x.test/fork", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/Fork", Version: "v1.0.1"}},
				{Path: "x.test/self", Version: "v0.0.0", Replace: &debug.Module{Path: "x.test/self", Version: "v0.36.3"}},
				{Path: "x.test/sub", Version: "v1.0.0", Replace: &debug.Module{Path: "./sub"}},
			}}},
			want: []Module{
				{"x.test/abs", "", "", "/src/abs"},
				{"x.test/fork", "v1.0.1", "example.com/Fork", ""},
				{"x.test/self", "v0.36.3", "x.test/self", ""},
				{"x.test/sub", "", "", "./sub"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var linked []linkage
			for _, info := range tc.infos {
				linked = append(linked, linkage{"binary", info})
			}
			got, err := merge(linked)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("modules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	src := Source{ModCache: filepath.FromSlash("/mod"), ModRoot: filepath.FromSlash("/tree/cmd")}
	for want, m := range map[string]Module{
		"/mod/github.com/!big/!b@v2.0.0+incompatible": {Path: "github.com/Big/B", Version: "v2.0.0+incompatible", Origin: "github.com/Big/B"},
		"/mod/example.com/!fork@v1.0.1":               {Path: "x.test/fork", Version: "v1.0.1", Origin: "example.com/Fork"},
		"/tree/cmd/sub":                               {Path: "x.test/sub", Dir: "./sub"},
		"/tree/patched":                               {Path: "x.test/up", Dir: "../patched"},
		"/src/abs":                                    {Path: "x.test/abs", Dir: "/src/abs"},
	} {
		if err := src.locate(&m); err != nil || m.Dir != filepath.FromSlash(want) {
			t.Errorf("%s is in %s, %v; want %s", m.Path, m.Dir, err, want)
		}
	}
}

func TestMergeNamesEveryModuleThatBinariesDisagreeOn(t *testing.T) {
	t.Parallel()
	dep := func(path, version string) *debug.Module { return &debug.Module{Path: path, Version: version} }
	_, err := merge([]linkage{
		{"bin/old", &debug.BuildInfo{Deps: []*debug.Module{dep("x.test/a", "v1.0.0"), dep("x.test/b", "v1.0.0"), dep("x.test/c", "v1.0.0")}}},
		{"bin/new", &debug.BuildInfo{Deps: []*debug.Module{dep("x.test/a", "v1.1.0"), dep("x.test/b", "v1.0.0"), dep("x.test/c", "v1.2.0")}}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	want := "license bin/new: has x.test/a@v1.1.0, but bin/old has x.test/a@v1.0.0; build both again\n" +
		"license bin/new: has x.test/c@v1.2.0, but bin/old has x.test/c@v1.0.0; build both again"
	if err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
}

func TestModulesRefusesFilesWithoutBuildInformation(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "script")
	write(t, text, "#!/bin/sh\n")
	for name, tc := range map[string]struct {
		binaries []string
		want     string
	}{
		"no list":   {nil, "no binaries"},
		"no binary": {[]string{text}, text},
		"no file":   {[]string{text + "-missing"}, text + "-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Modules(tc.binaries); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
