package module

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
)

func TestLinkedModulesHaveVersionSumAndReplacement(t *testing.T) {
	t.Parallel()
	var (
		own = debug.Module{Path: "slipway.build/cmd", Version: "(devel)"}
		a   = &debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"}
		b   = &debug.Module{Path: "github.com/Big/B", Version: "v2.0.0+incompatible", Sum: "h1:b"}
	)
	inA := Dependency{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"}
	inB := Dependency{Path: "github.com/Big/B", Version: "v2.0.0+incompatible", Sum: "h1:b"}
	for name, tc := range map[string]struct {
		infos []*debug.BuildInfo
		want  []Dependency
	}{
		"sorted, without duplicates and the working folder's": {
			infos: []*debug.BuildInfo{
				{Main: own, Deps: []*debug.Module{b}},
				{Main: own, Deps: []*debug.Module{a, b}},
			},
			want: []Dependency{inA, inB},
		},
		"a working folder with a version from version control": {
			infos: []*debug.BuildInfo{{Main: debug.Module{Path: "slipway.build/cmd", Version: "v1.2.3"}}},
			want:  []Dependency{},
		},
		"a dependency's main package": {
			infos: []*debug.BuildInfo{{Main: *a}},
			want:  []Dependency{inA},
		},
		"a dependency's main package in a folder": {
			infos: []*debug.BuildInfo{{Main: debug.Module{Path: "example.com/a", Version: "v1.0.0",
				Replace: &debug.Module{Path: "../patched", Version: "(devel)"}}}},
			want: []Dependency{{Path: "example.com/a", Version: "v1.0.0", Replace: Version{Path: "../patched"}}},
		},
		"replaced by itself, a fork, folders": {
			infos: []*debug.BuildInfo{{Main: own, Deps: []*debug.Module{
				{Path: "x.test/abs", Version: "v1.0.0", Replace: &debug.Module{Path: "/src/abs"}},
				{Path: "x.test/fork", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/Fork", Version: "v1.0.1", Sum: "h1:f"}},
				{Path: "x.test/self", Version: "v0.0.0", Replace: &debug.Module{Path: "x.test/self", Version: "v0.36.3", Sum: "h1:s"}},
				{Path: "x.test/sub", Version: "v1.0.0", Replace: &debug.Module{Path: "./sub"}},
			}}},
			want: []Dependency{
				{"x.test/abs", "v1.0.0", "", Version{"/src/abs", ""}},
				{"x.test/fork", "v1.0.0", "h1:f", Version{"example.com/Fork", "v1.0.1"}},
				{"x.test/self", "v0.0.0", "h1:s", Version{"x.test/self", "v0.36.3"}},
				{"x.test/sub", "v1.0.0", "", Version{"./sub", ""}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			var binaries []Binary
			for _, info := range tc.infos {
				names, binaries = append(names, "binary"), append(binaries, Binary{Modules: Linked(info)})
			}
			got, err := merge(names, binaries)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("modules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryModuleThatBinariesDisagreeOnIsNamed(t *testing.T) {
	t.Parallel()
	dep := func(path, version, sum string) Dependency { return Dependency{Path: path, Version: version, Sum: sum} }
	_, err := merge([]string{"bin/old", "bin/new"}, []Binary{
		{Modules: []Dependency{dep("x.test/a", "v1.0.0", ""), dep("x.test/b", "v1.0.0", "h1:b"), dep("x.test/c", "v1.0.0", "h1:c")}},
		{Modules: []Dependency{dep("x.test/a", "v1.1.0", ""), dep("x.test/b", "v1.0.0", "h1:b"), dep("x.test/c", "v1.0.0", "h1:d")}},
	})
	want := "bin/new links x.test/a@v1.1.0, but bin/old links x.test/a@v1.0.0: build both again\n" +
		"bin/new links x.test/c@v1.0.0 h1:d, but bin/old links x.test/c@v1.0.0 h1:c: build both again"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
}

func TestFilesWithoutBuildInformationAreRefused(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"script": "#!/bin/sh\n"})
	script := filepath.Join(root, "script")
	for want, binaries := range map[string][]string{
		"no binaries to list": nil,
		script + ":":          {script},
		script + "-missing":   {script + "-missing"},
	} {
		list := filepath.Join(root, "list.json")
		if err := WriteList(list, binaries); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if _, err := os.Stat(list); err == nil {
			t.Error("there is a list")
		}
	}
}

// A real binary with a dependency that is replaced by a folder.
func TestListOfABinaryIsReadAgain(t *testing.T) {
	t.Parallel()
	needs.Program(t, "go")
	root := tree(t, map[string]string{
		"cmd/go.mod":     "module own.test/cmd\n\ngo 1.24\n\nrequire dep.test/a v1.0.0\n\nreplace dep.test/a => ../patched\n",
		"cmd/main.go":    "package main\n\nimport _ \"dep.test/a\"\n\nfunc main() {}\n",
		"patched/go.mod": "module dep.test/a\n\ngo 1.24\n",
		"patched/a.go":   "package a\n",
	})
	build := exec.Command("go", "build", "-o", "binary", ".")
	build.Dir = filepath.Join(root, "cmd")
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(root, "list.json")
	if err := WriteList(file, []string{filepath.Join(root, "cmd", "binary")}); err != nil {
		t.Fatal(err)
	}
	m := load(t, root, "cmd")
	got, err := ReadLists(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Dependency{m.Requires[0].Dependency}, got); diff != "" {
		t.Errorf("go.mod and the binary differ (-go.mod +binary):\n%s", diff)
	}
}

func TestListsAreJoined(t *testing.T) {
	t.Parallel()
	root := tree(t, nil)
	a, newer := Dependency{Path: "x.test/a", Version: "v1.0.0", Sum: "h1:a"}, Dependency{Path: "x.test/a", Version: "v1.1.0", Sum: "h1:b"}
	fork := Dependency{Path: "x.test/a", Version: "v1.0.0", Sum: "h1:f", Replace: Version{"x.test/fork", "v1.0.0"}}
	var files []string
	for i, list := range [][]Dependency{{newer}, {a}, {fork, a}} {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(root, string(rune('0'+i))))
		write(t, files[i], string(text))
	}
	got, err := ReadLists(files...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Dependency{a, fork, newer}, got); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	write(t, files[0], "{")
	if _, err := ReadLists(files...); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("error %v for a list that is cut off", err)
	}
}
