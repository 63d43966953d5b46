package buildid

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// known are the languages whose go command computes build IDs as this package does. The tests say which one can be added.
var known = []string{"go1.26", "go1.27"}

// Known reports whether a version of the go command, such as "go1.26.8", computes build IDs as this package does.
func Known(goVersion string) bool {
	return slices.ContainsFunc(known, func(language string) bool {
		return goVersion == language || strings.HasPrefix(
			goVersion, language+".")
	})
}

// Sum returns a digest as an ID.
func Sum(h hash.Hash) string { return hashString(h.Sum(nil)) }

// hashString returns a digest as a build ID has it: 120 bits in base64 (HashToString in cmd/internal/buildid).
func hashString(sum []byte) string { return base64.URLEncoding.EncodeToString(sum[:15]) }

// ContentOf returns the last part of a build ID.
func ContentOf(id string) string { return id[strings.LastIndexByte(id, '/')+1:] }

// WithContent replaces the last part of a build ID.
func WithContent(id, content string) string { return id[:strings.LastIndexByte(id, '/')+1] + content }

// OfPackage reads the build ID of a compiled package. The file is an archive that begins with the package's export data, and that begins
// with lines of text (cmd/internal/buildid).
func OfPackage(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	start := make([]byte, 1024)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	_, rest, _ := bytes.Cut(start[:n], []byte("\nbuild id "))
	line, _, ended := bytes.Cut(rest, []byte("\n"))
	id, err := strconv.Unquote(string(line))
	if err != nil || !ended || !strings.Contains(id, "/") {
		return "", fmt.Errorf("%s: no build ID", file)
	}
	return id, nil
}

// A Platform is what a program is built for.
type Platform struct {
	OS    string // GOOS
	Arch  string // GOARCH
	Level string // what a processor must be able to do: GOAMD64=v1
}

// levels has, by architecture, the variable that says what a processor must be able to do.
var levels = map[string]string{
	"386": "GO386", "amd64": "GOAMD64", "arm": "GOARM", "arm64": "GOARM64", "mips": "GOMIPS", "mipsle": "GOMIPS", "mips64": "GOMIPS64",
	"mips64le": "GOMIPS64", "ppc64": "GOPPC64", "ppc64le": "GOPPC64", "riscv64": "GORISCV64", "wasm": "GOWASM",
}

// PlatformOf returns a platform. The variable of its level must be set, as the go command sets it for its tools.
func PlatformOf(goos, goarch string, getenv func(string) string) Platform {
	return Platform{goos, goarch, levels[goarch] + "=" + getenv(levels[goarch])}
}

// A Package is a package that a package imports, or a program links.
type Package struct {
	ImportPath string
	Content    string // of its build ID
}

// A Compile is what the action ID of a main package is a digest of, for go build -trimpath without cgo (buildActionID in
// cmd/go/internal/work/exec.go).
type Compile struct {
	Tool       string // what the compiler says with -V=full: compile version go1.26.8
	Module     string // with "@" and the version that go.mod requires, if another module does
	Go         string // the version in the module's go.mod: 1.26.0
	Platform   Platform
	ImportPath string
	BuildInfo  string
	Shared     bool     // whether the compiler gets -shared
	Files      []string // names and digests: see FileLine
	Imports    []Package
}

// ActionID returns the action ID of the package.
func (c Compile) ActionID() string { return digest(c.text()) }

func (c Compile) text() string {
	var h strings.Builder
	fmt.Fprintf(&h, "%scompile\nmodule %s\ngo %s\ngoos %s goarch %s\nimport %q\n", salt(c.Tool), c.Module, c.Go, c.Platform.OS,
		c.Platform.Arch, c.ImportPath)
	fmt.Fprintf(&h, "omitdebug false standard false local false prefix \"\"\ntrimpath\nmodinfo %q\n", c.BuildInfo)
	var flags []string
	if c.Shared {
		flags = []string{"-shared"}
	}
	fmt.Fprintf(&h, "compile %s %q []\n%s\n", c.Tool, flags, c.Platform.Level)
	for _, file := range c.Files {
		fmt.Fprintf(&h, "file %s\n", file)
	}
	for _, p := range c.Imports {
		fmt.Fprintf(&h, "import %s %s\n", p.ImportPath, p.Content)
	}
	return h.String()
}

// FileLine returns the name and the digest of a Go file, as the action ID of its package has them.
func FileLine(name string, data []byte) string {
	sum := sha256.Sum256(data)
	return name + " " + hashString(sum[:])
}

// A Link is what the action ID of a program is a digest of, for go build -trimpath without cgo (linkActionID in
// cmd/go/internal/work/exec.go).
type Link struct {
	Tool       string // what the linker says with -V=full: link version go1.26.8
	Platform   Platform
	ImportPath string
	GODEBUG    string   // the default
	Mode       string   // -buildmode of the linker
	Flags      []string // -ldflags
	External   string   // GO_EXTLINK_ENABLED
	Main       string   // build ID of the main package
	Packages   []Package
}

// ActionID returns the action ID of the link.
func (l Link) ActionID() string { return digest(l.text()) }

func (l Link) text() string {
	var h strings.Builder
	fmt.Fprintf(&h, "%slink\nbuildmode default goos %s goarch %s\nimport %q\n", salt(l.Tool), l.Platform.OS, l.Platform.Arch, l.ImportPath)
	fmt.Fprintf(&h, "omitdebug false standard false local false prefix \"\"\ndefaultgodebug %q\ntrimpath\nlink %s [] %s\n",
		l.GODEBUG, l.Tool, l.Mode)
	fmt.Fprintf(&h, "linkflags %q\n%s\nGOROOT=\nGO_EXTLINK_ENABLED=%s\n", l.Flags, l.Platform.Level, l.External)
	fmt.Fprintf(&h, "packagefile %s=%s\npackagemain %s\n", l.ImportPath, ContentOf(l.Main), l.Main)
	for _, p := range l.Packages {
		fmt.Fprintf(&h, "packagefile %s=%s\n", p.ImportPath, p.Content)
	}
	return h.String()
}

// BuildID returns what the linker gets with -buildid. The last part stands for the content ID, which is known after the link.
func (l Link) BuildID() string {
	id := l.ActionID()
	return id + "/" + l.Main + "/" + id
}

// salt is what each digest of the go command begins with: the version in what a tool says about itself.
func salt(tool string) string {
	if words := strings.Fields(tool); len(words) > 2 {
		return words[2]
	}
	return ""
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hashString(sum[:])
}

// Imported returns the imports of a main package, in the order of the go command: sorted, then those that the linker needs (LinkerDeps in
// cmd/go/internal/load).
func Imported(sorted []string, arch string) []string {
	all := slices.Clone(sorted)
	needed := []string{"runtime"}
	if arch == "arm" {
		needed = append(needed, "math")
	}
	for _, path := range needed {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// Linked returns the packages that a program links besides main, in the order of the go command: breadth first (addTransitiveLinkDeps in
// cmd/go/internal/work/action.go).
func Linked(imported []string, importsOf func(path string) []string) []string {
	var order []string
	seen := map[string]bool{"unsafe": true} // it has no file
	for queue := [][]string{imported}; len(queue) > 0; queue = queue[1:] {
		for _, path := range queue[0] {
			if !seen[path] {
				seen[path] = true
				order = append(order, path)
				queue = append(queue, importsOf(path))
			}
		}
	}
	return order
}
