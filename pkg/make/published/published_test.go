package published

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/goproxytest"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/module"
)

var spec = Spec{Requires: "cmd", Release: "acme.1", Output: "_output/modules"}

// newTree makes a tree and returns its folder. It sets variables of the process.
func newTree(t *testing.T) string {
	t.Helper()
	proxy := goproxytest.NewTestServer(t, "testdata/mod", "")
	for name, value := range map[string]string{
		"GOPROXY": proxy.URL, "GOSUMDB": "off", "GOMODCACHE": filepath.Join(t.TempDir(), "mod"), "GOFLAGS": "-modcacherw", "GOWORK": "off",
		"GOTOOLCHAIN": "local",
	} {
		t.Setenv(name, value)
	}
	root := unpack(t, "tree")
	run(t, filepath.Join(root, "cmd"), "go", "mod", "tidy")
	return root
}

func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	ar, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err == nil {
		err = txtar.Write(ar, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// makeModules runs the action in a tree.
func makeModules(t *testing.T, root string, s Spec) error {
	find := func(ctx context.Context, progress func(string)) (*toolchain.Go, error) {
		version, _, _ := strings.Cut(runtime.Version(), " ")
		return toolchain.Find(ctx, toolchain.Pin{Version: version}, progress)
	}
	g := &action.Graph{Root: root, State: "_output/state", Actions: []*action.Action{Action(root, find, s)}}
	return g.Run(t.Context(), action.Options{})
}

// publish makes the modules of a tree, and adds them to a folder.
func publish(t *testing.T, root, to string, s Spec) (sums string, err error) {
	t.Helper()
	if err := makeModules(t, root, s); err != nil {
		t.Fatal(err)
	}
	return Add(filepath.Join(root, filepath.FromSlash(s.Output)), to)
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// content returns the files in a folder, by name.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[strings.TrimPrefix(name, dir)] = read(t, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestProgramIsCompiledWithPublishedModules(t *testing.T) {
	root, proxy := newTree(t), t.TempDir()
	sums, err := publish(t, root, proxy, spec)
	if err != nil {
		t.Fatal(err)
	}
	const wantMod = `module k8s.io/kubernetes

go 1.26.0

require (
	k8s.io/api v0.37.2-0.acme.1 // a comment
	k8s.io/code-generator v0.37.1
)
`
	for name, want := range map[string]string{
		"k8s.io/kubernetes/@v/v1.37.2-0.acme.1.mod": wantMod,
		"k8s.io/api/@v/v0.37.2-0.acme.1.info":       `{"Version":"v0.37.2-0.acme.1"}`,
		"k8s.io/api/@v/list":                        "v0.37.2-0.acme.1\n",
	} {
		if diff := cmp.Diff(want, read(t, proxy, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	published, err := module.ReadSums(sums)
	if err != nil || len(published) != 2 || filepath.Base(sums) != "v1.37.2-0.acme.1.sum" {
		t.Fatalf("%s: %v, %v", sums, published, err)
	}
	for _, m := range published {
		at, _ := m.ProxyPath()
		if sum, err := dirhash.HashZip(filepath.Join(proxy, at+".zip"), dirhash.Hash1); err != nil || sum != m.Sum {
			t.Errorf("%s: sum %s, want %s, %v", m, sum, m.Sum, err)
		}
	}

	// The sums are enough: nobody asks the database about these modules.
	program := unpack(t, "program")
	if err := os.WriteFile(filepath.Join(program, "go.sum"), []byte(read(t, sums)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy)+","+strings.TrimSpace(run(t, root, "go", "env", "GOPROXY")))
	run(t, program, "go", "mod", "tidy")
	if got, want := run(t, program, "go", "run", "."), "cluster hello cluster a new field\n"; got != want {
		t.Errorf("the program prints %q, want %q", got, want)
	}
	if got := run(t, program, "go", "list", "-m", "k8s.io/api"); got != "k8s.io/api v0.37.2-0.acme.1\n" {
		t.Errorf("Go selects %s", got)
	}
	code := run(t, program, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api")
	if read(t, strings.TrimSpace(code), "LICENSE") == "" {
		t.Error("the license is empty")
	}
}

func TestTwoTreesPublishTheSameBytes(t *testing.T) {
	var made []map[string]string
	for range 2 {
		to := t.TempDir()
		if _, err := publish(t, newTree(t), to, spec); err != nil {
			t.Fatal(err)
		}
		made = append(made, content(t, to))
	}
	if diff := cmp.Diff(made[0], made[1]); diff != "" {
		t.Error(diff)
	}
}

func TestPublishedVersionsNeverChange(t *testing.T) {
	root, to := newTree(t), t.TempDir()
	if _, err := publish(t, root, to, spec); err != nil {
		t.Fatal(err)
	}
	first := content(t, to)
	if _, err := publish(t, root, to, spec); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if diff := cmp.Diff(first, content(t, to)); diff != "" {
		t.Errorf("the same again (-first +second):\n%s", diff)
	}

	// Another version is added.
	second := spec
	second.Release = "acme.10"
	if _, err := publish(t, root, to, second); err != nil {
		t.Fatal(err)
	}
	if got := read(t, to, "k8s.io/api/@v/list"); got != "v0.37.2-0.acme.1\nv0.37.2-0.acme.10\n" {
		t.Errorf("the list is %q", got)
	}

	// Other code at the same version adds nothing, not even what is missing.
	goMod := filepath.Join(root, "cmd", "go.mod")
	upstream := strings.Replace(read(t, goMod), "v0.37.1-patched", "v0.37.1", 1)
	missing := filepath.Join(to, "k8s.io/kubernetes/@v/v1.37.2-0.acme.1.zip")
	if err := errors.Join(os.WriteFile(goMod, []byte(upstream), 0o644), os.Remove(missing)); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Dir(goMod), "go", "mod", "tidy")
	before := content(t, to)
	_, err := publish(t, root, to, spec)
	if changed, ok := errors.AsType[*ChangedError](err); !ok || !strings.HasSuffix(changed.File, "v0.37.2-0.acme.1.zip") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(before, content(t, to)); diff != "" {
		t.Errorf("a refused run has changed something:\n%s", diff)
	}
}

func TestRunThatWasKilledIsCompleted(t *testing.T) {
	root, to := newTree(t), t.TempDir()
	if _, err := publish(t, root, to, spec); err != nil {
		t.Fatal(err)
	}
	want := content(t, to)
	folder := filepath.Join(to, "k8s.io", "kubernetes", "@v")
	if err := errors.Join(
		os.Remove(filepath.Join(folder, "v1.37.2-0.acme.1.zip")), os.Remove(filepath.Join(folder, "list")),
		os.Remove(filepath.Join(to, "k8s.io", "api", "@v", "list")), os.Remove(filepath.Join(to, "v1.37.2-0.acme.1.sum")),
		os.WriteFile(filepath.Join(folder, ".v1.37.2-0.acme.1.zip.123.tmp"), []byte("half"), 0o644),
		os.WriteFile(filepath.Join(to, "k8s.io", "api", "@v", ".list.123.tmp"), []byte("half"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t, root, to, spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, content(t, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamagedModuleIsNotPublished(t *testing.T) {
	root := newTree(t)
	modCache := strings.TrimSpace(run(t, root, "go", "env", "GOMODCACHE"))
	zip := filepath.Join(modCache, "cache", "download", "k8s.io", "kubernetes", "@v", "v1.37.1.zip")
	other := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(zip))), "api", "@v", "v0.37.1-patched.zip")
	if err := os.WriteFile(zip, []byte(read(t, other)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeModules(t, root, spec); err == nil || !strings.Contains(err.Error(), "v1.37.1.zip has the sum h1:") {
		t.Errorf("error %v", err)
	}
}

func TestModuleInAFolderIsNotPublished(t *testing.T) {
	root := newTree(t)
	goMod := filepath.Join(root, "cmd", "go.mod")
	if err := os.WriteFile(goMod, []byte(strings.Replace(read(t, goMod), "k8s.io/api v0.37.1-patched", "../api", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := module.Load(root, "cmd")
	if err != nil {
		t.Fatal(err)
	}
	w := work{spec: spec, requires: m}
	if err := w.find(); err == nil || !strings.Contains(err.Error(), "replaces k8s.io/api by the folder ../api") {
		t.Errorf("error %v", err)
	}
}

func TestRecipeHoldsEveryField(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
}
