package buildid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
)

// A program whose packages import each other in various orders, with an older module.
var program = map[string]string{
	"go.mod": "module example.com/program\n\ngo 1.24.0\n\nrequire example.com/dep v1.2.0\n\nreplace example.com/dep => ./dep\n",
	"main.go": "package main\n\nimport (\n\t\"os\"\n\n\t\"example.com/dep\"\n\t\"example.com/program/version\"\n)\n\n" +
		"func main() { println(len(os.Args), dep.Value, version.Version) }\n",
	"more.go": "//go:build linux && amd64\n\npackage main\n\nimport _ \"net/http\" // it imports packages that the standard library " +
		"vendors\n",
	"unsafe.go":  "package main\n\nimport \"unsafe\"\n\nvar _ unsafe.Pointer\n",
	"dep/go.mod": "module example.com/dep\n\ngo 1.20\n",
	"dep/dep.go": "package dep\n\nimport \"sort\"\n\nvar Value = sort.SearchInts(nil, 1)\n",

	"version/version.go": "package version\n\nvar Version string\n",
}

const ldflags = "-s -w -X example.com/program/version.Version=v1.2.3"

// A goCommand runs in a folder with the program.
type goCommand struct {
	name, dir string
	env       []string
}

func newProgram(t *testing.T, goName, platform string) goCommand {
	t.Helper()
	g := goCommand{name: goName, dir: t.TempDir()}
	for name, text := range program {
		file := filepath.Join(g.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	g.env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "GO386=sse2", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0",
		"GOPPC64=power8", "CGO_ENABLED=0",
		"GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off", "GOPROXY=off", "GOEXPERIMENT=", "GOTOOLCHAIN=local", "GOROOT=", "GO_EXTLINK_ENABLED=")
	return g
}

func (g goCommand) run(t *testing.T, env string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), g.name, args...)
	cmd.Dir, cmd.Env = g.dir, append(g.env, env)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, &errors)
	}
	return string(out), errors.String()
}

// A listed is a package as go list prints it.
type listed struct {
	ImportPath, Export, Name string
	GoFiles, Imports         []string
	Module                   *struct{ Path, Version, GoVersion string }
}

// The expected text of a digest is what the go command hashes. The result is a program of the same bytes. What compiles other standard
// libraries is for make soak.
func TestIDsAreThoseOfTheGoCommand(t *testing.T) {
	t.Parallel()
	needs.Program(t, "go")
	testProgram(t, "go", runtime.GOOS+"/"+runtime.GOARCH)
}

func testProgram(t *testing.T, goName, platform string) {
	g := newProgram(t, goName, platform)
	goos, goarch, _ := strings.Cut(platform, "/")
	file := filepath.Join(t.TempDir(), "program")
	_, hashes := g.run(t, "GODEBUG=gocachehash=1", "build", "-ldflags="+ldflags, "-o", file, ".")
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info := hashed(t, hashes, "build example.com/program")
	_, info, _ = strings.Cut(info, "\nmodinfo ")
	info, _, _ = strings.Cut(info, "\n")
	buildInfo, err := strconv.Unquote(info)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := debug.ParseBuildInfo(buildInfo)
	if err != nil {
		t.Fatal(err)
	}
	var godebug string // there is one, since go.mod has an older version of Go
	for _, s := range parsed.Settings {
		if s.Key == "DefaultGODEBUG" {
			godebug = s.Value
		}
	}

	packages := map[string]listed{}
	list, _ := g.run(t, "", "list", "-deps", "-export", "-json=ImportPath,Export,Name,GoFiles,Imports,Module", ".")
	for d := json.NewDecoder(strings.NewReader(list)); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
	contentOf := func(path string) Package {
		if path == "unsafe" {
			return Package{ImportPath: path}
		}
		id, err := OfPackage(packages[path].Export)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return Package{path, ContentOf(id)}
	}
	tool := func(name string) string {
		out, _ := g.run(t, "", "tool", name, "-V=full")
		return strings.TrimSpace(out)
	}
	env := func(key string) string {
		out, _ := g.run(t, "", "env", key)
		return strings.TrimSpace(out)
	}
	pie := goos == "darwin" || goos == "windows"
	const main = "example.com/program"
	compile := Compile{
		Tool: tool("compile"), Module: main + "@", Go: packages[main].Module.GoVersion, Platform: PlatformOf(goos, goarch, env),
		ImportPath: main, BuildInfo: buildInfo, Shared: pie && goos != "windows",
	}
	for _, name := range packages[main].GoFiles {
		data, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		compile.Files = append(compile.Files, FileLine(name, data))
	}
	imported := Imported(packages[main].Imports, goarch)
	for _, path := range imported {
		compile.Imports = append(compile.Imports, contentOf(path))
	}
	if diff := cmp.Diff(hashed(t, hashes, "build "+main), compile.text()); diff != "" {
		t.Errorf("main package (-go command +package buildid):\n%s", diff)
	}
	link := Link{
		Tool: tool("link"), Platform: compile.Platform, ImportPath: main, GODEBUG: godebug, Mode: "exe", Flags: strings.Fields(ldflags),
		Main: compile.ActionID() + "/" + contentOf(main).Content,
	}
	if pie {
		link.Mode = "pie"
	}
	for _, path := range Linked(imported, func(path string) []string { return packages[path].Imports }) {
		link.Packages = append(link.Packages, contentOf(path))
	}
	if diff := cmp.Diff(hashed(t, hashes, "link "+main), link.text()); diff != "" {
		t.Errorf("program (-go command +package buildid):\n%s", diff)
	}

	// The program as the linker leaves it has another build ID, and another signature.
	id, _ := g.run(t, "", "tool", "buildid", file)
	id = strings.TrimSpace(id)
	if got, err := OfProgram(file); err != nil || got != id {
		t.Errorf("the build ID is %s, %v; want %s", got, err, id)
	}
	linked := link.BuildID()
	if WithContent(linked, ContentOf(id)) != id {
		t.Fatalf("the linker gets %s for a program with %s", linked, id)
	}
	l, err := Find(made, linked)
	if err == nil {
		t.Errorf("found %+v in a program with a content ID", l)
	}
	left := bytes.ReplaceAll(made, []byte(id), []byte(linked))
	if l, err = Find(left, linked); err != nil {
		t.Fatal(err)
	}
	clear(left[l.Code+l.Signature/2:][:l.Signature/4])
	if err := os.WriteFile(file, left, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CompleteProgram(file, linked); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, made) {
		t.Errorf("%v, or not the bytes of the go command", err)
	}

	// A compiled package.
	export := packages["example.com/dep"].Export
	archive, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	packageID, err := OfPackage(export)
	if err != nil {
		t.Fatal(err)
	}
	compiled := WithContent(packageID, strings.Repeat("x", len(ContentOf(packageID))))
	if got, id := CompletePackage(bytes.ReplaceAll(archive, []byte(packageID), []byte(compiled)), compiled); id != packageID ||
		!bytes.Equal(got, archive) {
		t.Errorf("a package gets the ID %s, want %s, or other bytes", id, packageID)
	}
}

// hashed returns what the go command has written into a digest, from the output of GODEBUG=gocachehash=1.
func hashed(t *testing.T, output, name string) string {
	t.Helper()
	prefix := fmt.Sprintf("HASH[%s]: ", name)
	var text strings.Builder
	for line := range strings.Lines(output) {
		if quoted, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix+`"`); ok {
			part, err := strconv.Unquote(`"` + quoted)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(part)
		}
	}
	return text.String()
}

func TestKnownVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"go1.26": true, "go1.26.8": true, "go1.27.1": true, "go1.2": false, "go1.260.1": false, "go1.99.0": false, "devel": false, "": false,
	} {
		if Known(version) != want {
			t.Errorf("%q is known: %v", version, !want)
		}
	}
	if !Known(runtime.Version()) {
		t.Errorf("%s, which runs this, is not known", runtime.Version())
	}
}

func TestFilesOfOtherLinkersAreErrors(t *testing.T) {
	t.Parallel()
	const id = "action/main/content/action"
	for what, data := range map[string]string{
		"empty": "", "text": "a text of some length", "no build ID": "MZ and more", "no host's ID": "\x7fELF and " + id,
	} {
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := CompleteProgram(file, id); err == nil {
			t.Errorf("%s: no error", what)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != data {
			t.Errorf("%s: %v, or the file was changed to %q", what, err, got)
		}
		if _, err := OfPackage(file); err == nil {
			t.Errorf("%s: a package's ID", what)
		}
		if _, err := OfProgram(file); err == nil {
			t.Errorf("%s: a program's ID", what)
		}
	}
}
