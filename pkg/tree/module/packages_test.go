package module

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program compiles a program of two modules for a platform, stripped.
func program(t *testing.T, goos, goarch string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/app\n\ngo 1.21\n",
		"main.go": "package main\n\nimport (\n\t\"example.com/app/used.v2\"\n\t\"example.com/app/inlined\"\n)\n\n" +
			"func main() { println(inlined.G(used.F(len(used.List[int]{})))) }\n",
		"used.v2/a.go": "package used\n\ntype List[T any] []T\n\n//go:noinline\nfunc F(n int) int { return n + 1 }\n",
		"inlined/a.go": "package inlined\n\nfunc G(n int) int {\n\tif n > 1 {\n\t\tprintln(n)\n\t}\n\treturn n * 3\n}\n",
		"unused/a.go":  "package unused\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func TestPackagesOfStrippedPrograms(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"linux/amd64", "linux/s390x", "windows/amd64", "darwin/arm64"} {
		goos, goarch, _ := strings.Cut(platform, "/")
		f, err := os.Open(program(t, goos, goarch))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found, err := Packages(f)
		if err != nil {
			t.Errorf("%s: %v", platform, err)
		}
		for _, want := range []string{"main", "example.com/app/used.v2", "example.com/app/inlined", "runtime"} {
			if !slices.Contains(found, want) {
				t.Errorf("%s has no %s: %q", platform, want, found)
			}
		}
		if slices.Contains(found, "example.com/app/unused") {
			t.Errorf("%s has more than it links", platform)
		}
	}
}

func TestFunctionsAreOfPackages(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]string{
		"main.main":                             "main",
		"k8s.io/api/core/v1.(*Pod).Marshal":     "k8s.io/api/core/v1",
		"gopkg.in/yaml%2ev3.Unmarshal":          "gopkg.in/yaml.v3",
		"slices.SortFunc[go.shape.[]a/b.C,a/d]": "slices",
		"example.com/m.F[...].func1":            "example.com/m",
		"vendor/golang.org/x/net/idna.ToASCII":  "vendor/golang.org/x/net/idna",
		"type:.eq.[2]string":                    "",
		"go:buildid":                            "",
		"":                                      "",
		"memeqbody":                             "",
	} {
		if got := packageOf(function); got != want {
			t.Errorf("%s is of %q, want %q", function, got, want)
		}
	}
}

func FuzzPackages(f *testing.F) {
	f.Add([]byte("\x7fELF"))
	f.Add([]byte("MZ"))
	f.Add([]byte("\xcf\xfa\xed\xfe"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = Packages(bytes.NewReader(data)) })
}

func FuzzFunctionNames(f *testing.F) {
	f.Add([]byte("\xf1\xff\xff\xff\x00\x00\x01\x04aaaaaaaabbbbbbbbccccccccdddddddd"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = functionNames(data, binary.LittleEndian) })
}
