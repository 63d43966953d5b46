package patched

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// A world is a tree, testdata/world.txtar, with the modules that it requires.
type world struct {
	root   string
	module *module.Module
	g      *toolchain.Go
}

// newWorld makes a world with files added. It sets variables of the process.
func newWorld(t *testing.T, files ...txtar.File) *world {
	t.Helper()
	proxy := goproxytest.NewTestServer(t, "testdata/mod", "")
	cache := t.TempDir()
	for name, value := range map[string]string{
		"GOPROXY": proxy.URL, "GOSUMDB": "off", "GONOSUMDB": "*", "GOMODCACHE": filepath.Join(cache, "mod"), "GOFLAGS": "-modcacherw",
	} {
		t.Setenv(name, value)
	}
	ar, err := txtar.ParseFile("testdata/world.txtar")
	if err != nil {
		t.Fatal(err)
	}
	ar.Files = append(slices.DeleteFunc(ar.Files, func(f txtar.File) bool {
		return slices.ContainsFunc(files, func(other txtar.File) bool { return other.Name == f.Name })
	}), files...)
	w := &world{root: t.TempDir()}
	if err := txtar.Write(ar, w.root); err != nil {
		t.Fatal(err)
	}
	tidy := exec.Command("go", "mod", "tidy")
	tidy.Dir = filepath.Join(w.root, "cmd")
	tidy.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off")
	if out, err := tidy.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if w.module, err = module.Load(w.root, "cmd"); err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(runtime.Version(), " ")
	if w.g, err = toolchain.Find(t.Context(), toolchain.Pin{Version: version}, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) find(context.Context, func(string)) (*toolchain.Go, error) { return w.g, nil }

// spec returns what the patches of the tree ask for.
func (w *world) spec(t *testing.T) Spec {
	t.Helper()
	all, err := patch.Load(w.root)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d series, %v", len(all), err)
	}
	return SpecOf(all[0], "cmd")
}

// run makes the patched modules, and returns what was said to the user.
func (w *world) run(t *testing.T, gen Generator) (said string, err error) {
	t.Helper()
	a := Action(w.root, w.find, gen, w.spec(t), w.module, []string{"cmd/go.mod", "cmd/go.sum"})
	g := &action.Graph{Root: w.root, State: "_output/state", Actions: []*action.Action{a}}
	var lines strings.Builder
	err = g.Run(t.Context(), action.Options{Events: func(e action.Event) {
		if e.Kind == action.Output {
			fmt.Fprintln(&lines, e.Text)
		}
	}})
	return lines.String(), err
}

// program compiles the tree's program with the patched modules, runs it, and returns what it prints.
func (w *world) program(t *testing.T, flags ...string) (prints string, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "program")
	dir := filepath.Join(w.root, "cmd")
	g := w.g.WithProxies(filepath.Join(w.root, filepath.FromSlash(Dir("cmd")), Proxy))
	args := append([]string{"build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o", file}, flags...)
	build := g.Command(t.Context(), dir, "", "", append(args, ".")...)
	build.Env = append(build.Env, "GOFLAGS=-modcacherw")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(file).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), file
}

const withPatches = "-modfile=../_output/release-stage/patched/cmd/go.mod"

func diff(name, from, to string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,3 +1,3 @@\n package %[4]s\n \n-%[2]s\n+%[3]s\n", name,
		from, to, filepath.Base(filepath.Dir(name)))
}

var (
	kubernetes = txtar.File{Name: "patches/1.patch", Data: []byte(diff("pkg/greet/greet.go", `const Word = "hello"`,
		`const Word = "patched"`))}
	api = txtar.File{Name: "patches/2.patch", Data: []byte(diff("staging/src/k8s.io/api/name/name.go", `const Name = "world"`,
		`const Name = "cluster"`) +
		"diff --git a/docs/a.md b/docs/a.md\nnew file mode 100644\n--- /dev/null\n+++ b/docs/a.md\n@@ -0,0 +1 @@\n+text\n")}
	added = txtar.File{Name: "patches/3.patch", Data: []byte("diff --git a/pkg/greet/init.go b/pkg/greet/init.go\nnew file mode 100644\n" +
		"--- /dev/null\n+++ b/pkg/greet/init.go\n" +
		"@@ -0,0 +1,3 @@\n+package greet\n+\n+func init() { println(\"a new file\") }\n")}
)

func TestPatchedModulesAreCompiled(t *testing.T) {
	w := newWorld(t, kubernetes, api, added)
	if prints, _ := w.program(t); prints != "hello world\n" {
		t.Fatalf("unpatched: %q", prints)
	}
	said, err := w.run(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "patches/2.patch: passed over docs/a.md: no code is made from it\n"; said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	prints, file := w.program(t, withPatches)
	if prints != "a new file\npatched cluster\n" {
		t.Errorf("patched: %q", prints)
	}
	linked, err := module.ReadBinary(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ReadList(filepath.Join(w.root, filepath.FromSlash(Dir("cmd"))))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Modules) != 2 || len(list.Patches) != 3 {
		t.Fatalf("%+v", list)
	}
	for _, m := range list.Modules {
		found := false
		for _, d := range linked.Modules {
			found = found || d.Path == m.Path && d.Version == m.Version && d.Replace == m.Patched && d.Sum == m.Sum
		}
		if !found || !strings.Contains(m.Patched.Version, m.Version+"-patched.p") {
			t.Errorf("%+v is not among %+v", m, linked.Modules)
		}
		at, _ := m.Patched.ProxyPath()
		zip := filepath.Join(w.root, Dir("cmd"), Proxy, at+".zip")
		if sum, err := dirhash.HashZip(zip, dirhash.Hash1); err != nil || sum != m.Sum {
			t.Errorf("%s: sum %s, the list has %s, %v", zip, sum, m.Sum, err)
		}
		// What is in the module cache by hard links is what the go command would have unpacked there.
		in, _ := m.Patched.CachePath()
		dir := filepath.Join(w.g.ModCache, in)
		if sum, err := dirhash.HashDir(dir, m.Patched.String(), dirhash.Hash1); err != nil || sum != m.Sum {
			t.Errorf("%s: sum %s, the list has %s, %v", dir, sum, m.Sum, err)
		}
	}
	// Whoever cleans the module cache gets the same modules again.
	removed, _ := list.Modules[0].Patched.CachePath()
	removed = filepath.Join(w.g.ModCache, removed)
	if err := removeStaged(removed); err != nil {
		t.Fatal(err)
	}
	if err := list.Place(t.Context(), w.g.WithProxies(filepath.Join(w.root, Dir("cmd"), Proxy))); err != nil {
		t.Error(err)
	}
	if sum, err := dirhash.HashDir(removed, list.Modules[0].Patched.String(), dirhash.Hash1); err != nil || sum != list.Modules[0].Sum {
		t.Errorf("%s: sum %s, the list has %s, %v", removed, sum, list.Modules[0].Sum, err)
	}
	if again, file2 := w.program(t); again != "hello world\n" {
		t.Errorf("without patches again: %q (%s)", again, file2)
	}
}

// Patches of linked modules are in folders that are named as these, or are hunks of vendored code in a patch of the repository.
func TestLinkedModulesArePatched(t *testing.T) {
	lib := txtar.File{Name: "patches/example.com/lib/v2/1.patch", Data: []byte(diff("word/word.go", `const Word = "linked"`, `const Word = "mended"`) +
		diff("word/word_test.go", `const test = 1`, `const test = 2`))}
	vendored := txtar.File{Name: "patches/1.patch", Data: []byte(diff("vendor/example.com/lib/v2/word/word.go", `const Word = "mended"`,
		`const Word = "mended twice"`))}
	files := []txtar.File{
		{Name: "cmd/go.mod", Data: []byte("module example.com/cmd\n\ngo 1.26.0\n\nrequire (\n\texample.com/lib/v2 v2.0.0\n" +
			"\tk8s.io/kubernetes v1.37.1\n)\n")},
		{Name: "cmd/main.go", Data: []byte("package main\n\nimport (\n\t\"example.com/lib/v2/word\"\n\n\t\"k8s.io/kubernetes/pkg/greet\"\n)\n\n" +
			"func main() { println(greet.Word, word.Word) }\n")},
	}
	for _, test := range []struct {
		name   string
		more   []txtar.File
		prints string // by the program
		err    string
	}{
		{"in a folder of its own", []txtar.File{lib}, "hello mended\n", ""},
		{"vendored in the repository, after those of its own", []txtar.File{vendored, lib}, "hello mended twice\n", ""},
		{"with another one", []txtar.File{kubernetes, lib}, "patched mended\n", ""},
		{"that is not required", []txtar.File{{Name: "patches/example.com/lib/1.patch", Data: lib.Data}}, "",
			"patch patches/example.com/lib/1.patch has no effect on what is compiled\n\tword/word.go: cmd/go.mod requires no module that has it"},
		{"below another module", []txtar.File{{Name: "patches/example.com/lib/1.patch", Data: []byte(diff("v2/word/word.go", "a", "b"))}}, "",
			"v2/word/word.go: it is in the module example.com/lib/v2"},
		{"of the repository", []txtar.File{{Name: "patches/k8s.io/kubernetes/1.patch", Data: []byte(diff("pkg/greet/greet.go", "a", "b"))}}, "",
			"k8s.io/kubernetes is of the repository itself"},
		{"of tests alone", []txtar.File{{Name: lib.Name, Data: []byte(diff("word/word_test.go", `const test = 1`, `const test = 2`))}}, "",
			"1.patch has no effect on what is compiled\n\tword/word_test.go: no program has it"},
		{"that conflicts", []txtar.File{{Name: lib.Name, Data: []byte(diff("word/word.go", `const Word = "else"`, `const Word = "mended"`))}}, "",
			"patch patches/example.com/lib/v2/1.patch does not apply: word/word.go, hunk 1 of 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, slices.Concat(files, test.more)...)
			_, err := w.run(t, nil)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			prints, file := w.program(t, withPatches)
			if prints != test.prints {
				t.Errorf("prints %q", prints)
			}
			linked, err := module.ReadBinary(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(linked.Modules, func(d module.Dependency) bool {
				return d.Path == "example.com/lib/v2" && strings.HasPrefix(d.Replace.Version, "v2.0.0-patched.p")
			}) {
				t.Errorf("%+v", linked.Modules)
			}
		})
	}
}

func TestPatchedModulesAreThoseOfThePatchesAndRequirements(t *testing.T) {
	w := newWorld(t, kubernetes)
	if _, err := w.run(t, nil); err != nil {
		t.Fatal(err)
	}
	spec := w.spec(t)
	if _, err := Made(w.root, spec); err != nil {
		t.Error(err)
	}
	other := spec
	other.Patches = append(slices.Clone(spec.Patches), Source{Name: "patches/2.patch"})
	if _, err := Made(w.root, other); !errors.Is(err, ErrStale) {
		t.Errorf("with another patch: %v", err)
	}
	file := filepath.Join(w.root, "cmd", "go.mod")
	old, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(old, "// edited\n"...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Made(w.root, spec); !errors.Is(err, ErrStale) {
		t.Errorf("with another go.mod: %v", err)
	}
}

func TestPatchedModulesAreTheSameInTwoFolders(t *testing.T) {
	var made []string
	for range 2 {
		w := newWorld(t, kubernetes, api)
		if _, err := w.run(t, nil); err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for _, name := range []string{ModFile, SumFile, ListFile} {
			data, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(Dir("cmd")), name))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(data)
		}
		_, file := w.program(t, withPatches)
		binary, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(binary)
		made = append(made, all.String())
	}
	if made[0] != made[1] {
		t.Error("they differ")
	}
}

func TestConflictsNameEveryPatch(t *testing.T) {
	w := newWorld(t,
		txtar.File{Name: "patches/1.patch", Data: []byte(diff("pkg/greet/greet.go", `const Word = "hi"`, `const Word = "patched"`))},
		txtar.File{Name: "patches/2.patch", Data: []byte(diff("staging/src/k8s.io/api/missing/a.go", "a", "b"))},
	)
	for what, err := range map[string]error{
		"check": Check(t.Context(), w.root, w.find, w.spec(t), w.module, func(string) {}),
		"run":   func() error { _, err := w.run(t, nil); return err }(),
	} {
		var conflict *patch.Conflict
		if !errors.As(err, &conflict) && what == "check" {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range []string{
			"patches/1.patch does not apply: pkg/greet/greet.go, hunk 1 of 1", "expected: const Word = \"hi\"", "there is: const Word = \"hello\"",
			"patches/2.patch does not apply: staging/src/k8s.io/api/missing/a.go: there is no such file",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(w.root, filepath.FromSlash(Dir("cmd")), ModFile)); err == nil {
		t.Error("a go.mod was written")
	}
}

// generated is a Generator that writes a file into a module that no patch touches.
type generated struct{ name, text string }

func (g generated) Recipe() string                         { return g.text }
func (g generated) Affects(c map[string]patch.Change) bool { return len(c) > 0 }
func (g generated) Generate(_ context.Context, t Tree, _ func(string)) error {
	data, err := t.ReadFile("pkg/greet/greet.go")
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), "patched") {
		return fmt.Errorf("the generator reads unpatched code: %s", data)
	}
	t.Set(g.name, patch.Change{Data: []byte(g.text)})
	return nil
}

func TestGeneratedCodeMayBeInOtherModules(t *testing.T) {
	w := newWorld(t, kubernetes)
	gen := generated{"staging/src/k8s.io/api/name/zz_generated.go", "package name\n\nfunc init() { println(\"generated\") }\n"}
	if _, err := w.run(t, gen); err != nil {
		t.Fatal(err)
	}
	if prints, _ := w.program(t, withPatches); prints != "generated\npatched world\n" {
		t.Errorf("prints %q", prints)
	}
}

func TestModulesReplacedByAFolderCannotBePatched(t *testing.T) {
	w := newWorld(t, kubernetes)
	for i, r := range w.module.Requires {
		if r.Path == patch.Kubernetes {
			w.module.Requires[i].Replace = module.Version{Path: "../fork"}
		}
	}
	_, err := w.run(t, nil)
	if err == nil || !strings.Contains(err.Error(), "replaces k8s.io/kubernetes by the folder ../fork") {
		t.Errorf("%v", err)
	}
}

func TestRecipeHoldsEveryField(t *testing.T) {
	t.Parallel()
	recipetest.EachFieldOf(t, Spec{}, func(s Spec) []string {
		a := Action("/src", nil, nil, s, nil, nil)
		return append(append(a.Recipe, a.Inputs...), a.Outputs...)
	})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	const p, c = "0123456789abcdef", "fedcba9876543210"
	for original, want := range map[string]string{
		"v1.37.1":                            "v1.37.1-patched.p0123456789ab.cfedcba987654",
		"v2.5.0+incompatible":                "v2.5.0-patched.p0123456789ab.cfedcba987654+incompatible",
		"v0.0.0-20260108192941-914a6e750570": "v0.0.0-20260108192941-914a6e750570-patched.p0123456789ab.cfedcba987654",
	} {
		if got := version(original, p, c); got != want {
			t.Errorf("%s: %s, want %s", original, got, want)
		}
	}
}

func TestStaleFilesForBazelAreNamed(t *testing.T) {
	w := newWorld(t, kubernetes)
	config := filepath.Join(w.root, filepath.FromSlash(BazelConfig))
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("MODULES = {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const want = BazelConfig + " does not have k8s.io/"
	if said, err := w.run(t, nil); err != nil || !strings.Contains(said, want) {
		t.Errorf("%v: %s", err, said)
	}
	list, err := Made(w.root, w.spec(t))
	if err != nil {
		t.Fatal(err)
	}
	var versions string
	for _, m := range list.Modules {
		versions += fmt.Sprintf("%q\n", m.Patched.Version)
	}
	if err := errors.Join(os.WriteFile(config, []byte(versions), 0o644), os.RemoveAll(filepath.Join(w.root, "_output"))); err != nil {
		t.Fatal(err)
	}
	if said, err := w.run(t, nil); err != nil || strings.Contains(said, want) {
		t.Errorf("%v: %s", err, said)
	}
}
