package toolchain

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/tree/module"
)

// proxy writes a module into a new folder in the layout of a module proxy. The folder's name is not one for an address.
func proxy(t *testing.T, name module.Version) (dir string, pinned module.Pinned) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a b, 50%")
	at := filepath.Join(dir, filepath.FromSlash(name.Path), "@v", name.Version)
	goMod := "module " + name.Path + "\n"
	write(t, at+".info", `{"Version": "`+name.Version+`"}`, 0o644)
	write(t, at+".mod", goMod, 0o644)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name.String() + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(goMod)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, at+".zip", b.String(), 0o644)
	pinned.Version = name
	if pinned.Sum, err = dirhash.HashZip(at+".zip", dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	return dir, pinned
}

// moduleCache returns a new folder for the go command, which makes folders read-only.
func moduleCache(t *testing.T) string {
	t.Helper()
	cache := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(cache, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(name, 0o755)
			}
			return err
		})
	})
	return cache
}

func TestModulesOfAReadOnlyCacheAreUnpackedElsewhere(t *testing.T) {
	needs.Program(t, "go")
	theirs, ours := moduleCache(t), moduleCache(t)
	t.Setenv("GOMODCACHE", theirs)
	dir, m := proxy(t, module.Version{Path: "example.com/m", Version: "v1.0.0"})
	g, err := Find(t.Context(), Pin{Version: runtime.Version(), Modules: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Fetch(t.Context(), []module.Pinned{m}); err != nil {
		t.Fatal(err)
	}
	if g.WithWritableModules(ours) != g {
		t.Error("a cache that can be written is not used")
	}
	if err := os.RemoveAll(dir); err != nil { // as if there were no network
		t.Fatal(err)
	}
	own := g.withModules(ours)
	if err := own.Fetch(t.Context(), []module.Pinned{m}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(ours, "example.com", "m@v1.0.0", "go.mod")); err != nil || own.ModCache != ours ||
		own.Setting("GOMODCACHE") != ours {
		t.Errorf("the module cache is %s (GOMODCACHE=%s): %v", own.ModCache, own.Setting("GOMODCACHE"), err)
	}
	// Below a file, there is no folder that even root could write to.
	file := filepath.Join(dir, "file")
	write(t, file, "", 0o644)
	g.ModCache = filepath.Join(file, "mod")
	if got := g.WithWritableModules(ours); got.ModCache != ours {
		t.Errorf("the cache of a Go that cannot write to its own is %s", got.ModCache)
	}
}

func TestModulesAreFetchedAndChecked(t *testing.T) {
	needs.Program(t, "go")
	t.Setenv("GOMODCACHE", moduleCache(t))
	dir, m := proxy(t, module.Version{Path: "example.com/m", Version: "v1.0.0"})
	g, err := Find(t.Context(), Pin{Version: runtime.Version(), Modules: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	only := m
	only.Sum, only.GoModSum = "", "h1:wrong="
	if err := g.Fetch(t.Context(), []module.Pinned{only}); err == nil || !strings.Contains(err.Error(), "example.com/m@v1.0.0") {
		t.Errorf("another sum of go.mod: error %v", err)
	}
	other := m
	other.Sum = "h1:wrong="
	missing := module.Pinned{Version: module.Version{Path: "example.com/n", Version: "v1.0.0"}, Sum: "h1:x="}
	if err := g.Fetch(t.Context(), []module.Pinned{other}); err == nil || !strings.Contains(err.Error(), "verifying example.com/m@v1.0.0") {
		t.Errorf("another sum: error %v", err)
	}
	if err := g.Fetch(t.Context(), []module.Pinned{m, missing}); err == nil || !strings.Contains(err.Error(), "example.com/n@v1.0.0") {
		t.Errorf("a missing module: error %v", err)
	}
	if err := g.Fetch(t.Context(), []module.Pinned{m}); err != nil {
		t.Error(err)
	}
}
