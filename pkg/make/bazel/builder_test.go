package bazel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/needs"
)

// components are a program as those of a tree: its packages have assembly, embedded files, and the language of an older Go.
var components = map[string]string{
	"cmd/go.mod": "module example.com/cmd\n\ngo 1.26.0\n\nrequire example.com/dep v1.2.0\n\nreplace example.com/dep => ../dep\n",
	"cmd/program/main.go": "package main\n\nimport (\n\t\"os\"\n\n\t\"example.com/dep\"\n\t\"example.com/dep/version\"\n)\n\n" +
		"func main() { println(len(os.Args), dep.Text, dep.Sum(1, 2), version.Version) }\n",
	"dep/go.mod": "module example.com/dep\n\ngo 1.20\n",
	"dep/dep.go": "package dep\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/dep/internal\"\n)\n\n//go:embed note.txt\n" +
		"var Text string\n\nvar Sum = internal.Sum\n",
	"dep/note.txt":           "a note\n",
	"dep/internal/sum.go":    "package internal\n\nimport \"fmt\"\n\nfunc Sum(a, b int) string { return fmt.Sprint(a + b) }\n",
	"dep/internal/a_amd64.s": "#include \"textflag.h\"\n\nTEXT ·nothing(SB), NOSPLIT, $0-0\n\tRET\n",
	"dep/internal/a_arm64.s": "#include \"textflag.h\"\n\nTEXT ·nothing(SB), NOSPLIT, $0-0\n\tRET\n",
	"dep/internal/a.go":      "//go:build amd64 || arm64\n\npackage internal\n\nfunc nothing()\n\nfunc init() { nothing() }\n",
	"dep/version/version.go": "package version\n\nvar Version string\n",
}

// A component is a program that is built in two ways.
type component struct {
	dir, pkg string // folder of the module, and import path
	env      []string
	tags     string
	values   []string // of -X
}

// The builder of rules_go, patched, is called with the arguments that the rules have for it. (Bazel itself is run by the integration test,
// with the rules.)
func TestPatchedBuilderMakesTheBytesOfGoBuild(t *testing.T) {
	t.Parallel()
	builder := newBuilder(t)
	root := t.TempDir()
	for name, text := range components {
		if err := write(filepath.Join(root, filepath.FromSlash(name)), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range []string{"linux/" + runtime.GOARCH, "darwin/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			c := component{dir: filepath.Join(root, "cmd"), pkg: "example.com/cmd/program", tags: "selinux,notest",
				values: []string{"example.com/dep/version.Version=v1.2.3"}}
			c.set(platform)
			want := c.build(t)
			got, said := builder.build(t, c)
			if !bytes.Equal(got, want) || said != "" {
				t.Errorf("it makes other bytes than go build, and says %q", said)
			}
		})
	}
}

func (c *component) set(platform string) {
	goos, goarch, _ := strings.Cut(platform, "/")
	c.env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "GO386=sse2", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0",
		"GOPPC64=power8", "CGO_ENABLED=0",
		"GOFLAGS=-trimpath -buildvcs=false -mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOTOOLCHAIN=local", "GOENV=off",
		"GOFIPS140=off", "GODEBUG=")
}

func (c component) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, c.env
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args[:2], " "), err, &errors)
	}
	return strings.TrimSpace(string(out))
}

func (c component) build(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	ldflags := "-s -w"
	for _, v := range c.values {
		ldflags += " -X " + v
	}
	c.run(t, c.dir, "go", "build", "-tags="+c.tags, "-ldflags="+ldflags, "-o", file, c.pkg)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A builder is a program that Bazel's actions run.
type builder struct{ program, pack, goroot string }

func newBuilder(t *testing.T) builder {
	t.Helper()
	needs.Program(t, "go")
	needs.Program(t, "patch")
	c := component{}
	c.set(runtime.GOOS + "/" + runtime.GOARCH)
	tree, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	from := c.run(t, tree, "go", "mod", "download", "-json", "github.com/bazelbuild/rules_go")
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(from), &module); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.CopyFS(rules, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"patches/rules_go.patch", "generated/buildid.patch"} { // as MODULE.bazel has them
		c.run(t, rules, "patch", "--quiet", "-p1", "-i", filepath.Join(tree, "build", "bazel", filepath.FromSlash(name)))
	}
	dir := filepath.Join(rules, "go", "tools", "builders")
	build, err := os.ReadFile(filepath.Join(dir, "BUILD.bazel"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(build), `name = "builder_srcs",`)
	list, _, _ = strings.Cut(list, "]")
	b := builder{filepath.Join(rules, "builder"), c.run(t, tree, "go", "tool", "-n", "pack"), c.run(t, tree, "go", "env", "GOROOT")}
	args := []string{"go", "build", "-ldflags=-X=main.rulesGoStdlibPrefix=@//stdlib:", "-o", b.program, "path.go"}
	for line := range strings.Lines(list) {
		if name := strings.Trim(line, " \",\n"); strings.HasSuffix(name, ".go") {
			args = append(args, name)
		}
	}
	off := component{env: append(c.env, "GO111MODULE=off", "GOFLAGS=-trimpath")}
	off.run(t, dir, args...)
	return b
}

// A goPackage is one that go list prints.
type goPackage struct {
	ImportPath, Dir, Export, Name string
	Standard                      bool
	GoFiles, SFiles, HFiles       []string
	EmbedFiles, Imports           []string
	Module                        *struct {
		Path, Version, GoVersion, Sum string
		Replace                       *struct{ Path, Version, Sum string }
	}
}

// build makes a component with the builder, and returns what it says.
func (b builder) build(t *testing.T, c component) (program []byte, said string) {
	t.Helper()
	work := t.TempDir()
	goos, goarch := c.run(t, work, "go", "env", "GOOS"), c.run(t, work, "go", "env", "GOARCH")
	var standard, others []goPackage
	list := c.run(t, c.dir, "go", "list", "-deps", "-export", "-tags="+c.tags,
		"-json=ImportPath,Dir,Export,Name,Standard,GoFiles,SFiles,HFiles,EmbedFiles,Imports,Module", c.pkg)
	for d := json.NewDecoder(strings.NewReader(list)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Standard {
			standard = append(standard, p)
		} else {
			others = append(others, p)
		}
	}
	// The standard library is that of the go command, as the builder compiles it.
	var names, imports strings.Builder
	for _, p := range standard {
		fmt.Fprintln(&names, p.ImportPath)
		fmt.Fprintln(&imports, p.ImportPath, strings.Join(p.Imports, " "))
		if p.Export == "" {
			continue // unsafe
		}
		data, err := os.ReadFile(p.Export)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(filepath.Join(work, "std/pkg", goos+"_"+goarch, p.ImportPath+".a"), string(data)); err != nil {
			t.Fatal(err)
		}
	}
	packages := filepath.Join(work, "packages.txt")
	for name, text := range map[string]string{packages: names.String(), filepath.Join(work, "std/pkg/imports.txt"): imports.String()} {
		if err := write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(work, "std/pkg/include"), os.DirFS(filepath.Join(b.goroot, "pkg/include"))); err != nil {
		t.Fatal(err)
	}

	common := []string{"-sdk", b.goroot, "-goroot", filepath.Join(work, "std"), "-installsuffix", goos + "_" + goarch, "-tags", c.tags,
		"-package_list", packages}
	var mode, linkMode []string
	if goos == "darwin" || goos == "windows" {
		linkMode = []string{"-buildmode", "pie"}
	}
	if goos == "darwin" {
		mode = []string{"-shared"}
	}
	c.env = append(c.env, "GOROOT="+filepath.Join(work, "std"), "GOFLAGS=")
	link := append([]string{b.program, "link"}, common...)
	link = append(link, linkMode...)
	for i, p := range others {
		path := p.ImportPath
		name := filepath.Join(work, fmt.Sprint(i))
		if p.Name == "main" {
			path = "main"
			link = append(link, "-main", name+".a", "-main_package_path", p.ImportPath, "-main_imports", name+".imports", "-main_module_metadata",
				metadata(t, p, name), "-p", "main")
		} else {
			link = append(link, "-arc", "label="+path+"="+name+".a", "-imports", path+"="+name+".imports", "-package_metadata",
				path+"="+metadata(t, p, name))
		}
		version := ""
		if p.Module.Version != "" {
			version = "@" + p.Module.Version
		}
		flags := append([]string{"-lang=go" + strings.Join(strings.Split(p.Module.GoVersion, ".")[:2], "."),
			fmt.Sprintf("-trimpath=%s=>%s%s%s", p.Dir, p.Module.Path, version, strings.TrimPrefix(p.ImportPath, p.Module.Path))}, mode...)
		args := append([]string{b.program, "compilepkg"}, common...)
		args = append(args, "-pack", b.pack, "-importpath", p.ImportPath, "-p", path, "-lo", name+".a", "-o", name+".x",
			"-imports", name+".imports",
			"-gcflags", strings.Join(flags, " "), "-asmflags", strings.Join(mode, " "), "-embedroot", "", "-embedlookupdir", p.Dir)
		for _, file := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles) {
			args = append(args, "-src", filepath.Join(p.Dir, file))
		}
		for _, file := range p.EmbedFiles {
			args = append(args, "-embedsrc", filepath.Join(p.Dir, file))
		}
		for j, dep := range others[:i] {
			args = append(args, "-arc", dep.ImportPath+"="+dep.ImportPath+"="+filepath.Join(work, fmt.Sprint(j))+".x")
		}
		c.run(t, work, args...)
	}
	for _, value := range c.values {
		link = append(link, "-X", value)
	}
	file := filepath.Join(work, "program")
	cmd := exec.CommandContext(t.Context(), link[0], append(link[1:], "-o", file, "--", "-linkmode", "internal", "-s", "-w",
		"-extldflags", "")...)
	cmd.Dir, cmd.Env = work, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("link: %v\n%s", err, out)
	}
	if program, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return program, string(out)
}

// metadata writes what go.bzl has for a module: see package_url.
func metadata(t *testing.T, p goPackage, name string) string {
	t.Helper()
	m := p.Module
	query := url.Values{"go": {m.GoVersion}}
	if m.Replace != nil {
		query.Set("replace", m.Replace.Path)
		if m.Replace.Version != "" {
			query.Set("replace", m.Replace.Path+"@"+m.Replace.Version)
			query.Set("checksum", m.Replace.Sum)
		}
	} else if m.Sum != "" {
		query.Set("checksum", m.Sum)
	}
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + m.Version
	}
	text, err := json.Marshal(map[string]string{"purl": purl + "?" + query.Encode()})
	if err == nil {
		err = write(name+".json", string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return name + ".json"
}
