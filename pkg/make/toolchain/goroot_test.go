package toolchain

import (
	"archive/zip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"

	"slipway.build/pkg/tree/catalog"
)

func TestSumIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs have other names there")
	}
	const env = "# Defaults.\nGOPROXY=https://modules.example.com,direct\nGOSUMDB=sums.example.com\n\n# More.\nGOTOOLCHAIN=auto\n"
	tools := "pkg/tool/" + runtime.GOOS + "_" + runtime.GOARCH + "/"
	inModule := map[string]string{ // with the text of each
		"VERSION": "go1.99.1\n", "LICENSE": "free", "go.env": env, "bin/go": "go", "bin/gofmt": "gofmt",
		"pkg/include/textflag.h": "#define", tools + "compile": "compile", tools + "link": "link", "lib/time/zoneinfo.zip": "PK",
		"src/_go.mod": "module std\n", "src/cmd/_go.mod": "module cmd\n", "src/fmt/print.go": "package fmt\n",
		"src/test/test.go": "package test\n",
	}
	installed := map[string]string{
		"VERSION": "go1.99.1\n", "LICENSE": "free", "bin/go": "go", "bin/gofmt": "gofmt",
		"pkg/include/textflag.h": "#define", tools + "compile": "compile", tools + "link": "link", "lib/time/zoneinfo.zip": "PK",
		"src/go.mod": "module std\n", "src/cmd/go.mod": "module cmd\n", "src/fmt/print.go": "package fmt\n", "src/test/test.go": "package test\n",

		"go.env":      strings.Replace(env, "=auto", "=local", 1),
		"api/go1.txt": "x", "doc/spec.html": "x", "misc/wasm/x.js": "x", "test/run.go": "x", ".git/HEAD": "x", ".gitignore": "x",
		"bin/gopls": "x", tools + "pprof": "x", "pkg/tool/plan9_arm/link": "x", "pkg/obj/x": "x", "src/.DS_Store": "x",
		"src/cmd/dist/dist": "x", "VERSION.cache": "x",
		"src/cmd/_go.mod": "copied to go.mod by the go command",
	}
	name := moduleOf("go1.99.1", host)
	archive := filepath.Join(t.TempDir(), "module.zip")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for file, text := range inModule {
		w, err := z.Create(name + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}

	goroot := t.TempDir()
	for file, text := range installed {
		write(t, filepath.Join(goroot, filepath.FromSlash(file)), text, 0o644)
	}
	link := filepath.Join(t.TempDir(), "go") // as /usr/local/go often is
	if err := os.Symlink(goroot, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{goroot, link} {
		g, err := newGoroot(dir, "go1.99.1", host)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.sum()
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			files, err := g.files()
			t.Errorf("sum %s, want %s; files %q, %v", got, want, files, err)
		}
	}
}

// The Go of this machine may be a vendor's. In CI it is not, and fails this test if releases are packed by other rules.
func TestRealGoHasTheSumInTheCatalog(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	want := c.Go.Sums[host]
	root := real(t).Root
	if versionOf(root) != c.Go.Version || want == "" {
		t.Skipf("%s is not the pinned %s, or has no sum for %s", versionOf(root), c.Go.Version, host)
	}
	g, err := newGoroot(root, c.Go.Version, host)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.sum()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got == want:
	case os.Getenv("CI") == "":
		t.Skipf("the Go in %s has the sum %s, and %s was released with %s", root, got, c.Go.Version, want)
	default:
		t.Errorf("the Go in %s has the sum %s, and %s was released with %s", root, got, c.Go.Version, want)
	}
}
