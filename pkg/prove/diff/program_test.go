package diff_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// build compiles a program with the Go on PATH, and returns its file.
func build(t *testing.T, files map[string]string, env []string, flags ...string) string {
	t.Helper()
	needs.Program(t, "go")
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
	c := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), ".")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath",
		"GOPROXY=off", "GOTOOLCHAIN=local")
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

const stripped = "-ldflags=-s -w"

func TestPrograms(t *testing.T) {
	t.Parallel()
	base := build(t, program, nil, stripped)
	for _, tt := range []struct {
		name  string
		files map[string]string
		flags []string
		want  []string
	}{
		{"a function that grows", edited("main.go", "n + 41", "n*n*n + n*41 + n/7"), nil,
			[]string{"functions: 1 of another size\n", "main.pick: "}},
		{"a function more", edited("main.go", "func main() {", "//go:noinline\nfunc extra() { println(1) }\n\nfunc main() {\n"+
			"\tif len(os.Args) > 9 {\n\t\textra()\n\t}"),
			nil, []string{"functions: 1 only in B", "main.extra", "main.main: "}},
		{"a method less", edited("main.go", "interface{ Name() string }); ok {", "interface{ Area() int }); ok {", "main.go",
			"n.Name()", "n.Area()"),
			nil, []string{"only in A\n", "main.(*square).Name"}},
		{"another constant", edited("main.go", "n + 41", "n + 42"), nil, []string{"the same names and sizes, which does not prove",
			"content: first at byte"}},
		{"version of a module", edited("go.mod", "v1.0.0", "v1.0.1"), nil, []string{"modules: 1 differ",
			"example.com/dep v1.0.0, replaced by ./dep (devel) and example.com/dep v1.0.1"}},
		{"another main package", edited("go.mod", "example.com/program", "example.com/other"), nil,
			[]string{"modules: main module: example.com/program", "modules: main package: "}},
		{"build tags", program, []string{"-tags=a,b"}, []string{"build settings: 1 differ", `-tags: "unset" and "a,b"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			verdict, text := compare(t, base, build(t, tt.files, nil, append([]string{stripped}, tt.flags...)...))
			for _, want := range tt.want {
				if verdict != diff.Different || !strings.Contains(text, want) {
					t.Errorf("%s; want different, with %q:\n%s", verdict, want, text)
				}
			}
		})
	}
	t.Run("the same bytes", func(t *testing.T) {
		t.Parallel()
		if verdict, text := compare(t, base, build(t, program, nil, stripped)); verdict != diff.Same ||
			!strings.HasPrefix(text, "the same bytes: ") {
			t.Errorf("%s:\n%s", verdict, text)
		}
	})
}

func TestProgramsOfOtherFormats(t *testing.T) {
	t.Parallel()
	for goos, want := range map[string]string{"darwin": "main.pick: ",
		"windows": "functions: are not compared: only those of ELF and Mach-O"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			env := []string{"GOOS=" + goos}
			verdict, text := compare(t, build(t, program, env, stripped), build(t, edited("main.go", "n + 41", "n*n*n + n*41 + n/7"), env, stripped))
			if verdict != diff.Different || !strings.Contains(text, want) {
				t.Errorf("%s; want different, with %q:\n%s", verdict, want, text)
			}
		})
	}
}

func TestBrokenPrograms(t *testing.T) {
	t.Parallel()
	file := build(t, program, nil, stripped)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := [][]byte{whole[:len(whole)/2], whole[:100], []byte("text\n"), {}}
	for i := range 50 { // one bit, all over the file
		damaged := slices.Clone(whole)
		damaged[len(damaged)/50*i+i] ^= 1 << (i % 8)
		broken = append(broken, damaged)
	}
	for i, data := range broken {
		if verdict, text := compare(t, file, write(t, t.TempDir(), "program", data)); verdict != diff.Different ||
			!strings.Contains(text, "content: first at byte") {
			t.Errorf("%d is %s:\n%s", i, verdict, text)
		}
	}
}
