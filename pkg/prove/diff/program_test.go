package diff_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway.build/pkg/mechanism/needs"
	"slipway.build/pkg/prove/diff"
)

// The program that tests change in one place each.
var program = map[string]string{
	"go.mod": "module example.com/program\n\ngo 1.22\n\nrequire example.com/dep v1.0.0\n\nreplace example.com/dep v1.0.0 => ./dep\n",
	"main.go": `package main

import (
	_ "embed"
	"os"

	"example.com/dep"
)

//go:embed note.txt
var note string

var stamp = "unset"

var table = []int{1, 2, 3, 5000000}

var left, right = pair{1, 2}, pair{3, 4}

type pair struct{ a, b int }

//go:noinline
func (p *pair) sum() int { return p.a + 10*p.b }

var names = map[string]string{"a": "first", "b": "second"}

type shape interface{ Area() int }

type square struct {
	Side int "json:\"side\""
}

func (s *square) Area() int { return s.Side * s.Side }

func (s *square) Name() string { return "square" }

//go:noinline
func pick(n int) shape { return &square{n + 41} }

//go:noinline
func label(n int) string {
	switch n {
	case 1:
		return "hello"
	case 2:
		return "world"
	}
	return names["a"]
}

//go:noinline
func closures() (sum int) {
	var fs []func() int
	for i := 0; i < 3; i++ {
		fs = append(fs, func() int { return i })
	}
	for _, f := range fs {
		sum += f()
	}
	return sum
}

func main() {
	println(note, stamp, table[len(os.Args)], label(len(os.Args)), pick(1).Area(), closures(), dep.Value(), left.sum(), right.sum(), left.b, right.b)
	left.a, right.a = len(os.Args), len(os.Args)
	var x any = pick(2)
	if n, ok := x.(interface{ Name() string }); ok {
		println(n.Name())
	}
}
`,
	"note.txt":   "a note\n",
	"dep/go.mod": "module example.com/dep\n\ngo 1.22\n",
	"dep/dep.go": "package dep\n\n//go:noinline\nfunc Value() int { return 7 }\n",
}

// edited is the program with replacements: file, old, new, and so on. Nothing is replaced in a file that is new.
func edited(edits ...string) map[string]string {
	p := maps.Clone(program)
	for e := range slices.Chunk(edits, 3) {
		if old := p[e[0]]; old != "" && !strings.Contains(old, e[1]) {
			panic(e[0] + " has no " + e[1])
		} else if old == "" {
			p[e[0]] = e[2]
		} else {
			p[e[0]] = strings.ReplaceAll(old, e[1], e[2])
		}
	}
	return p
}

// go127 returns the Go command of a toolchain whose linker lays out programs in another way than Go 1.26. It comes through the
// module proxy; without it the test is skipped, in CI it fails.
func go127(t *testing.T) string {
	t.Helper()
	root, err := findGo127()
	if err != nil {
		needs.Missing(t, "%v", err)
	}
	return filepath.Join(root, "bin", "go")
}

var findGo127 = sync.OnceValues(func() (string, error) {
	const version = "go1.27.1"
	c := exec.Command("go", "env", "GOROOT")
	c.Env = append(os.Environ(), "GOTOOLCHAIN="+version)
	var problem bytes.Buffer
	c.Stderr = &problem
	root, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", version, err, &problem)
	}
	return strings.TrimSpace(string(root)), nil
})

// build compiles a program with the Go on PATH, and returns its file.
func build(t *testing.T, files map[string]string, env []string, flags ...string) string {
	t.Helper()
	return buildWith(t, "go", files, env, flags...)
}

func buildWith(t *testing.T, goTool string, files map[string]string, env []string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "program")
	c := exec.Command(goTool, append(append([]string{"build", "-o", out}, flags...), ".")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local")
	c.Env = append(c.Env, env...)
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

func compare(t *testing.T, a, b string) (diff.Verdict, string) {
	t.Helper()
	r, err := diff.Compare(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	return r.Verdict, text.String()
}

// commands returns the Go command of each version whose programs are compared.
var commands = map[string]func(*testing.T) string{
	"go1.26": func(*testing.T) string { return "go" },
	"go1.27": go127,
}

const stripped = "-ldflags=-s -w"

func TestEquivalentPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files map[string]string
		env   []string
		a, b  []string // flags
		want  string
	}{
		{"another folder", program, nil, nil, nil, "paths: "},
		{"without paths", program, nil, []string{stripped}, []string{"-trimpath", stripped}, "paths: "},
		{"another build id", program, nil, []string{"-ldflags=-s -w"}, []string{"-ldflags=-s -w -buildid=other"}, "build id: "},
		{"long settings", program, nil, []string{stripped},
			[]string{stripped, "-gcflags=example.com/none=" + strings.Repeat("-N ", 300)}, "build settings: "},
		{"an unused file", edited("unused.go", "", "// Package main has a comment.\npackage main\n"), nil, []string{stripped}, []string{stripped}, ""},
		{"other order of functions", program, nil, []string{stripped}, []string{"-ldflags=-s -w -randlayout=7"}, "addresses: "},
		{"other order of functions, with symbols", program, nil, nil, []string{"-ldflags=-randlayout=8"}, "addresses: "},
		{"another text address", program, nil, []string{stripped}, []string{"-ldflags=-s -w -T=0x600000"}, "addresses: "},
		{"arm64", program, []string{"GOARCH=arm64"}, []string{stripped}, []string{"-ldflags=-s -w -randlayout=9"}, "addresses: "},
	} {
		for name, command := range commands {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				goTool := command(t)
				a, b := buildWith(t, goTool, program, tt.env, tt.a...), buildWith(t, goTool, tt.files, tt.env, tt.b...)
				verdict, text := compare(t, a, b)
				if verdict != diff.Equivalent || !strings.Contains(text, tt.want) {
					t.Errorf("%s; want equivalent, with %q:\n%s", verdict, tt.want, text)
				}
			})
		}
	}
}

func TestDifferentPrograms(t *testing.T) {
	t.Parallel()
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDifferentPrograms(t, command(t))
		})
	}
}

func testDifferentPrograms(t *testing.T, goTool string) {
	base := buildWith(t, goTool, program, nil, stripped)
	for _, tt := range []struct {
		name  string
		files map[string]string
		flags []string
		want  []string
	}{
		{"constant in code", edited("main.go", "n + 41", "n + 42"), nil, []string{"main.pick+"}},
		{"string of the same length", edited("main.go", `"hello"`, `"hallo"`), nil, []string{"hallo"}},
		{"string in a table", edited("main.go", `"first"`, `"fifth"`), nil, []string{"fifth"}},
		{"value in a table", edited("main.go", "5000000", "5000001"), nil, []string{"data: "}},
		{"value in a table that looks like a moved address", edited("main.go", "5000000", "5000032"), nil, []string{"data: "}},
		{"embedded file", edited("note.txt", "a note", "b note"), nil, []string{"b note"}},
		{"version of a module", edited("go.mod", "v1.0.0", "v1.0.1"), nil, []string{"modules: ", "example.com/dep v1.0.1"}},
		{"language version", edited("go.mod", "go 1.22", "go 1.21", "dep/go.mod", "go 1.22", "go 1.21"), nil, []string{"main.closures"}},
		{"stamp", program, []string{"-X main.stamp=v1.2.3"}, []string{"data"}},
		{"stamp of the same length", program, []string{"-X main.stamp=reset"}, []string{"data"}},
		{"a function more", edited("main.go", "func main() {", "//go:noinline\nfunc extra() { println(1) }\n\nfunc main() {\n\tif len(os.Args) > 9 {\n\t\textra()\n\t}"),
			nil, []string{"functions: 1 only in B", "main.extra"}},
		{"a method less", edited("main.go", "interface{ Name() string }); ok {", "interface{ Area() int }); ok {", "main.go", "n.Name()", "n.Area()"),
			nil, []string{"only in A", "main.(*square).Name"}},
		{"struct tag", edited("main.go", `\"side\"`, `\"size\"`), nil, []string{"data"}},
		{"name of a type", edited("main.go", "square struct", "circle struct", "main.go", "*square)", "*circle)", "main.go", "&square", "&circle"),
			nil, []string{"main.(*circle).Area"}},
		{"line numbers", edited("main.go", "//go:noinline\nfunc pick", "//go:noinline\n\n\nfunc pick"), nil, []string{"lines"}},
		{"halves of variables swapped, and what refers to them", edited("main.go", "pair{1, 2}, pair{3, 4}", "pair{1, 4}, pair{3, 2}",
			"main.go", "left.b, right.b", "right.b, left.b"), nil, nil},
		{"order of cases", edited("main.go", `return "hello"`, `return "-"`, "main.go", `return "world"`, `return "hello"`, "main.go", `return "-"`, `return "world"`),
			nil, []string{"main.label"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// Addresses differ, too, so that the comparison can't be one of bytes.
			for _, extra := range []string{"", " -randlayout=3"} {
				flags := "-ldflags=-s -w" + extra + " " + strings.Join(tt.flags, " ")
				verdict, text := compare(t, base, buildWith(t, goTool, tt.files, nil, flags))
				if verdict != diff.Different {
					t.Errorf("%q: %s; want different:\n%s", flags, verdict, text)
				}
				for _, want := range tt.want {
					if !strings.Contains(text, want) {
						t.Errorf("%q: no %q in\n%s", flags, want, text)
					}
				}
			}
		})
	}
}

func TestProgramsOfTwoVersionsOfGoAreDifferent(t *testing.T) {
	t.Parallel()
	verdict, text := compare(t, build(t, program, nil, stripped), buildWith(t, go127(t), program, nil, stripped))
	if verdict != diff.Different || !strings.Contains(text, "Go: go1.26") || !strings.Contains(text, "and go1.27") {
		t.Errorf("%s:\n%s", verdict, text)
	}
}

// Nothing can be said of a program of a Go whose tables are not known, unless the bytes are the same.
func TestUnknownGoIsAnError(t *testing.T) {
	t.Parallel()
	known := build(t, program, nil, stripped)
	data, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	unknown := bytes.ReplaceAll(data, []byte("go1.26"), []byte("go1.99"))
	other := bytes.Clone(unknown)
	other[len(other)-1] ^= 1
	file := write(t, t.TempDir(), "program", unknown)
	for _, pair := range [][2]string{{known, file}, {file, known}, {file, write(t, t.TempDir(), "program", other)}} {
		r, err := diff.Compare(t.Context(), pair[0], pair[1])
		if !errors.As(err, new(diff.UnknownGoError)) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "compiled by go1.99") {
			t.Errorf("%+v, %v; want an error with %s and its version of Go", r, err, file)
		}
	}
	if verdict, text := compare(t, file, write(t, t.TempDir(), "program", unknown)); verdict != diff.Identical {
		t.Errorf("the same bytes are %s:\n%s", verdict, text)
	}
	inside := func(data []byte) string { return release(t, pack(t, 6, content{"bin/kubelet", 0o755, data})) }
	_, err = diff.Compare(t.Context(), inside(data), inside(unknown))
	if err == nil || !strings.Contains(err.Error(), "kubernetes.tar.gz: bin/kubelet: in B: compiled by go1.99") {
		t.Errorf("%v; want an error with the binary and its version of Go", err)
	}
}

func TestOneChangedFunctionIsTheOnlyOneNamed(t *testing.T) {
	t.Parallel()
	a := build(t, program, nil, stripped)
	b := build(t, edited("main.go", "n + 41", "n + 1<<40"), nil, "-ldflags=-s -w -randlayout=5")
	_, text := compare(t, a, b)
	if !strings.Contains(text, "functions: 1 with other instructions") || strings.Contains(text, "something else") || strings.Contains(text, "data:") {
		t.Errorf("want only main.pick:\n%s", text)
	}
}

func TestBrokenPrograms(t *testing.T) {
	t.Parallel()
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBrokenPrograms(t, buildWith(t, command(t), program, nil, stripped))
		})
	}
}

// testBrokenPrograms damages a program in many places. Hardly any damage goes unnoticed.
func testBrokenPrograms(t *testing.T, file string) {
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) string {
		name := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(name, data, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	broken := [][]byte{whole[:len(whole)/2], whole[:100], []byte("text\n"), {}}
	for i := range 200 { // one bit, all over the file
		damaged := slices.Clone(whole)
		damaged[len(damaged)/200*i+i] ^= 1 << (i % 8)
		broken = append(broken, damaged)
	}
	equivalent := 0
	for i, data := range broken {
		switch verdict, text := compare(t, file, write(data)); verdict {
		case diff.Identical:
			t.Errorf("%d is identical", i)
		case diff.Equivalent:
			equivalent++
			t.Logf("%d is equivalent:\n%s", i, text)
		}
	}
	// Padding, file headers and the build id do not count; there is little of them.
	if equivalent > 10 {
		t.Errorf("%d of %d damaged programs are equivalent", equivalent, len(broken))
	}
}
