package inputs

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/recipe/recipetest"
	"slipway.build/pkg/tree/input"
	"slipway.build/pkg/tree/module"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packed makes a zip file of a module, as some proxy might.
func packed(t *testing.T, method uint16, at time.Time, files ...[2]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		to, err := w.CreateHeader(&zip.FileHeader{Name: f[0], Method: method, Modified: at})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "module.zip")
	write(t, name, b.String())
	return name
}

func TestZipFilesOfOneModuleBecomeTheSame(t *testing.T) {
	t.Parallel()
	a, b := [2]string{"example.com/m@v1.0.0/a.go", strings.Repeat("package m\n", 1000)},
		[2]string{"example.com/m@v1.0.0/go.mod", "module example.com/m\n"}
	dir := t.TempDir()
	var first []byte
	for i, from := range []string{packed(t, zip.Store, time.Time{}, a, b), packed(t, zip.Deflate, time.Unix(1e9, 0), b, a)} {
		want, err := dirhash.HashZip(from, dirhash.Hash1)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "to.zip")
		sum, err := repack(t.Context(), from, to)
		if err != nil || sum != want {
			t.Fatalf("sum %s, want %s, error %v", sum, want, err)
		}
		if sum, err = dirhash.HashZip(to, dirhash.Hash1); err != nil || sum != want {
			t.Errorf("packed again, it has the sum %s, want %s, error %v", sum, want, err)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Errorf("%d and %d bytes, not the same", len(first), len(data))
		}
	}
	if len(first) > 1000 {
		t.Errorf("%d bytes: not compressed", len(first))
	}
	if _, err := repack(t.Context(), packed(t, zip.Store, time.Time{}, a, a), filepath.Join(dir, "twice.zip")); err == nil ||
		!strings.Contains(err.Error(), "two files have one name") {
		t.Errorf("error %v", err)
	}
	bad := filepath.Join(dir, "bad.zip")
	write(t, bad, string(first[:len(first)/2]))
	if _, err := repack(t.Context(), bad, filepath.Join(dir, "to.zip")); err == nil || !strings.Contains(err.Error(), "bad.zip") {
		t.Errorf("cut short: error %v", err)
	}
}

func TestPackingStopsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	from := packed(t, zip.Store, time.Time{}, [2]string{"example.com/m@v1.0.0/go.mod", "module example.com/m\n"})
	if _, err := repack(ctx, from, filepath.Join(t.TempDir(), "to.zip")); !errors.Is(err, context.Canceled) {
		t.Errorf("a module: error %v", err)
	}
	if err := archive.Tar(ctxio.Writer(ctx, io.Discard), nil, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the tarball: error %v", err)
	}
}

// world is a module cache with a module, and a Go that has it.
type world struct {
	cache string
	m     module.Pinned
	g     *toolchain.Go
}

func newWorld(t *testing.T) world {
	t.Helper()
	modCache := t.TempDir()
	w := world{cache: filepath.Join(modCache, "cache", "download"), g: &toolchain.Go{ModCache: modCache,
		Root: filepath.Join(modCache, "no Go"), Version: runtime.Version()}}
	goMod := "module example.com/Upper\n"
	zipped := packed(t, zip.Deflate, time.Time{}, [2]string{"example.com/Upper@v1.0.0/go.mod", goMod})
	data, err := os.ReadFile(zipped)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(w.cache, "example.com", "!upper", "@v", "v1.0.0")
	write(t, at+".zip", string(data))
	write(t, at+".mod", goMod)
	w.m.Version = module.Version{Path: "example.com/Upper", Version: "v1.0.0"}
	if w.m.Sum, err = dirhash.HashZip(zipped, dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	return w
}

func quiet(action.Event) {}

func TestModulesAreLaidOutAsAProxyHasThem(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	graph := module.Pinned{Version: module.Version{Path: "example.com/Upper", Version: "v0.0.0-20261121131324-0123456789ab"}}
	write(t, filepath.Join(w.cache, "example.com", "!upper", "@v", graph.Version.Version+".mod"), "module example.com/Upper\n")
	if err := (ModulesSpec{Modules: []module.Pinned{graph, w.m}}).write(t.Context(), w.g, dir, quiet); err != nil {
		t.Fatal(err)
	}
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			names = append(names, input.Modules+"/"+filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&input.List{Modules: []module.Pinned{graph, w.m}}).Files()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0"}`} {
		if data, err := os.ReadFile(filepath.Join(dir, "example.com", "!upper", "@v", name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, error %v", name, data, err)
		}
	}
}

func TestAModuleWithAnotherSumIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	zipped, goMod := w.m, w.m
	zipped.Sum, goMod.GoModSum = "h1:other=", "h1:other="
	for file, m := range map[string]module.Pinned{"v1.0.0.zip": zipped, "v1.0.0.mod": goMod} {
		err := ModulesSpec{Modules: []module.Pinned{m}}.write(t.Context(), w.g, t.TempDir(), quiet)
		if changed, ok := errors.AsType[*ChangedError](err); !ok || changed.Module != "example.com/Upper@v1.0.0" ||
			filepath.Base(changed.File) != file {
			t.Errorf("%s: error %v", file, err)
		}
	}
}

func TestSumsAreThoseOfAllOtherMembers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "b")
	write(t, file, "b\n")
	entries, err := withSums([]archive.Entry{
		{Name: "a", Mode: 0o644, Data: []byte("a\n")},
		{Name: "b", Mode: 0o755, Path: file},
		{Name: "c", Mode: 0o644, Path: "read by nobody", Sum: strings.Repeat("0c", 32)},
		{Name: "d", Mode: fs.ModeSymlink, Link: "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7  a
0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f  b
` + strings.Repeat("0c", 32) + "  c\n"
	if e := entries[len(entries)-1]; e.Name != input.Sums || string(e.Data) != want {
		t.Errorf("%s:\n%s", e.Name, e.Data)
	}
}

func TestEveryFieldIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, ModulesSpec{})
	recipetest.EachField(t, Spec{})
}
