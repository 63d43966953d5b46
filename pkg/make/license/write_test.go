package license

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/module"
)

// tree is a working folder with two dependencies: one in the module cache, with only a package inside forked
// code linked, and one that is replaced by a folder.
var tree = map[string]string{
	"LICENSE":        "ours",
	"goroot/LICENSE": "go",
	"goroot/PATENTS": "go patents",
	"src/cmd/go.mod": "module own.test/cmd\ngo 1.24\nrequire (\n\tdep.test/Plain v1.0.0\n\tdep.test/patched v1.0.0\n)\n" +
		"replace dep.test/patched => ../patched\n",
	"src/cmd/main.go": "package main\nimport (\n\t_ \"dep.test/Plain/forked/inner\"\n\t_ \"dep.test/patched\"\n)\n" +
		"func main() {}\n",
	"src/patched/go.mod":          "module dep.test/patched\ngo 1.24\n",
	"src/patched/patch.go":        "package patched\n",
	"src/patched/COPYING":         "patched",
	"src/patched/sub/x.go":        "package sub\n",
	"src/patched/sub/COPYING":     "of a package that is not linked",
	"plain/go.mod":                "module dep.test/Plain\ngo 1.24\n",
	"plain/license.md":            "plain",
	"plain/NOTICE":                "plain notice",
	"plain/license.go":            "package plain\n",
	"plain/copyright/c.txt":       "a folder is no license",
	"plain/forked/LICENCE":        "forked",
	"plain/forked/README":         "not a license",
	"plain/forked/inner/inner.go": "package inner\n",
}

func TestWrite(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range tree {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	src := build(t, root)

	tar := filepath.Join(root, "LICENSES.tar")
	if err := Write(t.Context(), tar, src); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"LICENSE":                              "ours",
		"go/LICENSE":                           "go",
		"go/PATENTS":                           "go patents",
		"vendor/dep.test/Plain/NOTICE":         "plain notice",
		"vendor/dep.test/Plain/forked/LICENCE": "forked",
		"vendor/dep.test/Plain/license.md":     "plain",
		"vendor/dep.test/patched/COPYING":      "patched",
		"modules.txt": "dep.test/Plain\tv1.0.0\tNOTICE\tlicense.md\tforked/LICENCE\n" +
			"dep.test/patched\tlocal\tCOPYING\n",
	}
	if diff := cmp.Diff(want, unpacked(t, tar)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	t.Run("stops when canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Write(ctx, filepath.Join(root, "canceled"), src); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses a list that lacks a module", func(t *testing.T) {
		other := src
		other.Packages = filepath.Join(root, "lacking.json")
		write(t, other.Packages, `{"ImportPath": "dep.test/patched", "Module": {"Path": "dep.test/patched", "Replace": {"Path": "../patched"}}}`)
		err := Write(t.Context(), filepath.Join(root, "lacking"), other)
		if err == nil || !strings.Contains(err.Error(), "no package of dep.test/Plain@v1.0.0, which is linked") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses a damaged list of modules", func(t *testing.T) {
		other := src
		other.Modules = filepath.Join(root, "damaged.json")
		write(t, other.Modules, "[")
		if err := Write(t.Context(), filepath.Join(root, "damaged"), other); err == nil || !strings.Contains(err.Error(), other.Modules) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses a list of another version", func(t *testing.T) {
		other := src
		other.Packages = filepath.Join(root, "other.json")
		list, err := os.ReadFile(src.Packages)
		if err != nil {
			t.Fatal(err)
		}
		write(t, other.Packages, strings.ReplaceAll(string(list), "v1.0.0", "v1.0.1"))
		err = Write(t.Context(), filepath.Join(root, "other"), other)
		if err == nil || !strings.Contains(err.Error(), "dep.test/Plain@v1.0.1, but linked is dep.test/Plain@v1.0.0") {
			t.Errorf("got %v", err)
		}
	})
}

func TestFindAllNamesEveryModuleWithoutLicense(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	modules := []Module{
		dependency("x/deep", "v1.0.0"),
		dependency("x/good", "v1.0.0"),
		replaced("x/notice", "v1.0.0", module.Version{Path: "fork/notice", Version: "v1.0.0"}),
		replaced("x/patched", "v1.0.0", module.Version{Path: "../patched"}),
	}
	for i, m := range modules {
		modules[i].Dir = filepath.Join(root, filepath.Base(m.Path))
	}
	write(t, filepath.Join(root, "deep", "a", "LICENSE"), "not at the root")
	write(t, filepath.Join(root, "good", "UNLICENSE"), "")
	write(t, filepath.Join(root, "notice", "NOTICE.txt"), "alone")
	write(t, filepath.Join(root, "patched", "PATENTS"), "alone")
	_, err := findAll(t.Context(), modules, map[string][]Package{"x/deep": {{ImportPath: "x/deep/a"}}})
	if err == nil {
		t.Fatal("no error")
	}
	want := "license: no license file at the root of\n\tx/deep@v1.0.0\n\tx/notice@fork/notice@v1.0.0\n\tx/patched@local\n"
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error:\n%v\nwant it to begin with:\n%s", err, want)
	}
}

func TestFindSaysThatAModuleIsNotInTheCache(t *testing.T) {
	t.Parallel()
	m := dependency("x/a", "v1.0.0")
	m.Dir = filepath.Join(t.TempDir(), "a@v1.0.0")
	_, err := find(m, nil)
	if err == nil || !strings.Contains(err.Error(), "go mod download") {
		t.Errorf("got %v", err)
	}
}

func TestIsLicense(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"LICENSE": true, "License.txt": true, "LICENSE-APACHE": true, "LICENSE.MPL-2.0": true, "license.md": true,
		"COPYING": true, "COPYING.LESSER": true, "copyright": true, "NOTICE": true, "PATENTS": true,
		"UNLICENSE": true, "MIT-LICENSE.txt": true,
		"license.go": false, "LICENSE_test.GO": false, "README.md": false, "relicense.md": false, "doc.go": false,
	} {
		if got := isLicense(name); got != want {
			t.Errorf("isLicense(%q) = %v, want %v", name, got, want)
		}
	}
}

// build puts the plain module into a module cache, compiles the working folder, and lists its packages.
func build(t *testing.T, root string) Source {
	t.Helper()
	src := Source{
		License:  filepath.Join(root, "LICENSE"),
		ModCache: filepath.Join(root, "mod"),
		ModRoot:  filepath.Join(root, "src", "cmd"),
		GOROOT:   filepath.Join(root, "goroot"),
		Modules:  filepath.Join(root, "modules.json"),
		Packages: filepath.Join(root, "packages.json"),
	}
	proxy := filepath.Join(root, "proxy")
	serve(t, proxy, filepath.Join(root, "plain"))
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = src.ModRoot
		cmd.Env = append(os.Environ(), "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOMODCACHE="+src.ModCache,
			"GOFLAGS=-modcacherw -mod=mod -buildvcs=false", "GONOSUMDB=*", "GOPRIVATE=", "GONOPROXY=", "GOPROXY="+fileURL(proxy), "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
		return out
	}
	binary := filepath.Join(root, "bin")
	run("build", "-o", binary, ".")
	if err := module.WriteList(src.Modules, []string{binary}); err != nil {
		t.Fatal(err)
	}
	list := run("list", "-deps", "-json=ImportPath,Module,Standard", ".")
	write(t, src.Packages, string(list))
	return src
}
