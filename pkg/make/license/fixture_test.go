package license

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// serve writes dir as the module dep.test/Plain v1.0.0 into a folder that works as GOPROXY.
func serve(t *testing.T, proxy, dir string) {
	t.Helper()
	m := module.Version{Path: "dep.test/Plain", Version: "v1.0.0"}
	base := filepath.Join(proxy, "dep.test", "!plain", "@v", m.Version)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, base+".mod", string(mod))
	write(t, base+".info", `{"Version": "v1.0.0"}`)
	f, err := os.Create(base + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zip.CreateFromDir(f, m, dir); err != nil {
		t.Fatal(err)
	}
}

func fileURL(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a Windows drive
	}
	return "file://" + slashed
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns the texts in a folder, which must all have mode 0644.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode() != 0o644 {
			t.Errorf("%s has mode %v, want 0644", name, info.Mode())
		}
		text, err := fs.ReadFile(os.DirFS(dir), name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// unpacked returns the texts in a tar.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	texts, err := readTar(file)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for name, text := range texts {
		files[name] = string(text)
	}
	return files
}
