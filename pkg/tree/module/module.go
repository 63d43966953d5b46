package module

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// FIPS is the path of Go's cryptographic module. Binaries that are compiled with a version of it have it among their inputs.
const FIPS = "golang.org/fips140"

// A Version names a module at a version. A folder that replaces a module has no version, and its Path is the folder's,
// as go.mod writes it.
type Version struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
}

// String returns PATH@VERSION, or the path if there is no version.
func (v Version) String() string { return gomod.Version(v).String() }

// ProxyPath returns where a module proxy has the version's files, without their suffix: see `go help goproxy`.
func (v Version) ProxyPath() (string, error) { return v.join("/@v/") }

// CachePath returns the slash-separated folder of the version's code, relative to a module cache.
func (v Version) CachePath() (string, error) { return v.join("@") }

func (v Version) join(separator string) (string, error) {
	path, err := gomod.EscapePath(v.Path)
	if err != nil {
		return "", err
	}
	version, err := gomod.EscapeVersion(v.Version)
	if err != nil {
		return "", fmt.Errorf("module %s: %w", v.Path, err)
	}
	return path + separator + version, nil
}

// Staging returns the version of the staging modules that belong to a version of Kubernetes: v0.37.1 for v1.37.1.
func Staging(kubernetes string) string { return "v0" + strings.TrimPrefix(kubernetes, "v1") }

// Repository returns the path that all modules of a module's repository begin with: two elements, as in go.etcd.io/etcd, or three at hosts
// of many owners, as in github.com/OWNER/NAME.
func Repository(modulePath string) string {
	prefix, _, _ := gomod.SplitPathVersion(modulePath)
	elements := strings.Split(prefix, "/")
	n := 2
	switch elements[0] {
	case "github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "golang.org":
		n = 3
	}
	return path.Join(elements[:min(n, len(elements))]...)
}

// A Dependency is a module that packages are compiled from: a go.mod requires it, or a binary links it.
type Dependency struct {
	Path    string  `json:"path"`             // as its packages are imported
	Version string  `json:"version"`          // as it is required
	Sum     string  `json:"sum,omitempty"`    // of the code, as in go.sum ("h1:…"); empty for a folder, and where go.sum has none
	Replace Version `json:"replace,omitzero"` // where the code comes from instead
}

// Code returns the module that the code comes from: the replacement, if there is one.
func (d Dependency) Code() Version {
	if d.Replace != (Version{}) {
		return d.Replace
	}
	return Version{d.Path, d.Version}
}

// Folder returns the folder that replaces the module, as go.mod writes it, or "".
func (d Dependency) Folder() string {
	if d.Replace.Version != "" {
		return ""
	}
	return d.Replace.Path
}

// A Requirement is a module that a go.mod requires.
type Requirement struct {
	Dependency
	Direct bool // packages or tools of the requiring module use it
}

// A Replacement is a replace directive of a go.mod.
type Replacement struct {
	Old  Version // without a version: all of them
	New  Version
	Line int // in go.mod
}

// A Module has the content of go.mod and go.sum in a folder of the tree. It remembers what it reads of the sources, and is not
// safe for concurrent use.
type Module struct {
	Name     string        // its folder, relative to the root, with slashes
	Dir      string        // its folder
	Path     string        // import path
	Go       string        // version in the go line ("1.26.0"), or ""
	Requires []Requirement // since Go 1.17, every module that its packages are compiled from
	Replaces []Replacement

	root    string
	sums    map[Version]string // as in go.sum: a version may end in /go.mod
	inputs  []string
	folders map[string]*folder // that were read, by path relative to Dir
}

// MayBeReleased reports whether a release, slipway or its unit tests may need a module in a folder of the tree, slash-separated. Modules
// below the folder test are other programs, which tests and measurements run beside a release. What is below a folder testdata, and what
// the go command ignores because of its name, is data.
func MayBeReleased(folder string) bool {
	if folder == "." {
		return true
	}
	parts := strings.Split(folder, "/")
	return parts[0] != "test" && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "testdata" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".")
	})
}

// Load reads the module in the folder name, slash-separated, below root. A missing go.sum counts as an empty one.
func Load(root, name string) (*Module, error) {
	m := &Module{Name: name, Dir: filepath.Join(root, filepath.FromSlash(name)), root: root, folders: map[string]*folder{}}
	data, err := os.ReadFile(m.file())
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(m.file(), data, nil)
	if err != nil {
		return nil, err
	}
	if mod.Module == nil {
		return nil, fmt.Errorf("%s names no module", m.file())
	}
	if m.sums, err = readSums(filepath.Join(m.Dir, "go.sum")); err != nil {
		return nil, err
	}
	m.Path = mod.Module.Mod.Path
	if mod.Go != nil {
		m.Go = mod.Go.Version
	}
	for _, r := range mod.Replace {
		m.Replaces = append(m.Replaces, Replacement{Old: Version(r.Old), New: Version(r.New), Line: r.Syntax.Start.Line})
	}
	for _, r := range mod.Require {
		d := Dependency{Path: r.Mod.Path, Version: r.Mod.Version, Replace: m.replacement(Version(r.Mod))}
		d.Sum = m.sums[d.Code()]
		tool := slices.ContainsFunc(mod.Tool, func(t *modfile.Tool) bool { return within(t.Path, d.Path) })
		m.Requires = append(m.Requires, Requirement{d, !r.Indirect || tool})
	}
	return m, nil
}

func (m *Module) file() string { return filepath.Join(m.Dir, "go.mod") }

// readSums parses a go.sum.
func readSums(file string) (map[Version]string, error) {
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	sums := map[Version]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "h1:") {
			sums[Version{f[0], f[1]}] = f[2]
		}
	}
	return sums, nil
}

// SumOfGoMod returns the sum of a go.mod file, as go.sum has it ("h1:…").
func SumOfGoMod(data []byte) (string, error) {
	return dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
}

// Digest returns a digest, in hex, of the go.mod and go.sum in a folder. A missing file counts as an empty one.
func Digest(dir string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", name, len(data), data) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// replacement returns what replaces a version: a directive that names the version goes before one that names all.
func (m *Module) replacement(v Version) (found Version) {
	for _, r := range m.Replaces {
		if r.Old == v {
			return r.New
		}
		if r.Old == (Version{Path: v.Path}) {
			found = r.New
		}
	}
	return found
}

// Require returns the requirement of the module with a path.
func (m *Module) Require(path string) (Requirement, bool) {
	i := slices.IndexFunc(m.Requires, func(r Requirement) bool { return r.Path == path })
	if i < 0 {
		return Requirement{}, false
	}
	return m.Requires[i], true
}

// Provider returns the required module that has a package: of those that its import path begins with, the one with the
// longest path.
func (m *Module) Provider(pkg string) (Requirement, bool) {
	var longest Requirement
	for _, r := range m.Requires {
		if within(pkg, r.Path) && len(r.Path) > len(longest.Path) {
			longest = r
		}
	}
	return longest, longest.Path != ""
}

// Version returns the version of the required module that has a package, or "".
func (m *Module) Version(pkg string) string {
	r, _ := m.Provider(pkg)
	return r.Version
}

// within reports whether an import path is a module's path or below it.
func within(pkg, module string) bool { return pkg == module || strings.HasPrefix(pkg, module+"/") }

// A Pinned module is one that a go.sum has sums of.
type Pinned struct {
	Version
	Sum      string `json:"sum,omitempty"`      // of the code; empty if only its go.mod file counts
	GoModSum string `json:"goModSum,omitempty"` // of its go.mod file
}

// Pinned lists the modules that go.sum has sums of, sorted.
func (m *Module) Pinned() []Pinned { return pinned(m.sums) }

// ReadSums lists the modules that a file in the form of a go.sum has sums of, sorted.
func ReadSums(file string) ([]Pinned, error) {
	sums, err := readSums(file)
	return pinned(sums), err
}

func pinned(sums map[Version]string) []Pinned {
	found := map[Version]Pinned{}
	for v, sum := range sums {
		version, isGoMod := strings.CutSuffix(v.Version, "/go.mod")
		v.Version = version
		p := found[v]
		p.Version = v
		if isGoMod {
			p.GoModSum = sum
		} else {
			p.Sum = sum
		}
		found[v] = p
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Pinned) int { return compare(a.Version, b.Version) })
}

func compare(a, b Version) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
}

// Folders returns the folders that replace modules, as go.mod writes them.
func (m *Module) Folders() []string {
	var folders []string
	for _, r := range m.Replaces {
		if r.New.Version == "" {
			folders = append(folders, r.New.Path)
		}
	}
	return folders
}

// FolderOutside returns a folder outside of the tree that replaces a module, as go.mod writes it, or "".
func (m *Module) FolderOutside() string {
	for _, folder := range m.Folders() {
		if dir := filepath.FromSlash(folder); filepath.IsAbs(dir) || !filepath.IsLocal(filepath.Join(filepath.FromSlash(m.Name), dir)) {
			return folder
		}
	}
	return ""
}

// Inputs lists the files and folders, these with a final slash, that every compile in the module depends on. go.mod and
// go.sum stand for everything in the module cache. Folders that replace modules change without go.sum changing, so they
// count like sources. Paths are relative to the root, so that keys are the same wherever the tree is, or absolute outside.
func (m *Module) Inputs() ([]string, error) {
	if m.inputs != nil {
		return m.inputs, nil
	}
	inputs := []string{path.Join(m.Name, "go.mod"), path.Join(m.Name, "go.sum")}
	for _, r := range m.Replaces {
		if r.New.Version != "" {
			continue
		}
		dir := filepath.FromSlash(r.New.Path)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(m.Dir, dir)
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			return nil, fmt.Errorf("%s:%d: %s is replaced by a folder that is not a module: %w", m.file(), r.Line, r.Old.Path, err)
		}
		input := filepath.ToSlash(dir)
		if rel, err := filepath.Rel(m.root, dir); err == nil && filepath.IsLocal(rel) {
			input = filepath.ToSlash(rel)
		}
		parts, err := parts(dir)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			inputs = append(inputs, input+"/"+part)
		}
	}
	slices.Sort(inputs)
	m.inputs = inputs
	return inputs, nil
}

// parts lists what the Go command reads in a module's folder. Names that begin with a dot or an underscore are left out,
// such as .git and _output of a Kubernetes work tree: they are large, and change while the sources stay the same.
func parts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
