package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/tree/catalog"
)

// A module is one that binaries are compiled in, as far as a plan has to know it: what its compiles depend on.
type module struct {
	name string // its folder, as the catalog has it
	dir  string // absolute
	path string // import path

	// inputs of every compile: go.mod and go.sum, which stand for all that is in the module cache, and the folders that
	// stand in for a module, which change without go.sum changing, and so are hashed like sources.
	inputs []string

	requires []*modfile.Require
	folders  map[string]*goFolder // that were read, by path relative to dir
}

// module reads a module of the tree, once.
func (b *builder) module(name string) (*module, error) {
	if m := b.modules[name]; m != nil {
		return m, nil
	}
	m, err := loadModule(b.Root, name)
	if err == nil {
		b.modules[name] = m
	}
	return m, err
}

// version is that of the required module which has a package.
func (m *module) version(pkg string) string {
	longest, version := "", ""
	for _, r := range m.requires {
		if path := r.Mod.Path; (pkg == path || strings.HasPrefix(pkg, path+"/")) && len(path) > len(longest) {
			longest, version = path, r.Mod.Version
		}
	}
	return version
}

// ldflags are the linker's flags that stamp the module's binaries with the versions of the modules that they are from. All
// binaries are linked by one command, so they are the same for all.
func (m *module) ldflags(c *catalog.Catalog) string {
	var flags []string
	for _, bin := range c.Binaries {
		if bin.Module != m.name || bin.Stamp == "" {
			continue
		}
		flags = append(flags, "-X="+bin.Stamp+"="+m.version(bin.ImportPath()))
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

func loadModule(root, name string) (*module, error) {
	m := &module{name: name, dir: filepath.Join(root, filepath.FromSlash(name)), folders: map[string]*goFolder{}}
	file := filepath.Join(m.dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return nil, err
	}
	m.path, m.requires = mod.Module.Mod.Path, mod.Require
	m.inputs = []string{slashed(name, "go.mod"), slashed(name, "go.sum")}
	for _, r := range mod.Replace {
		if r.New.Version != "" {
			continue
		}
		dir := filepath.FromSlash(r.New.Path)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(m.dir, dir)
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			return nil, fmt.Errorf("%s:%d: %s is replaced by a folder that is no module: %w", file, r.Syntax.Start.Line, r.Old.Path, err)
		}
		input := filepath.ToSlash(dir)
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			input = filepath.ToSlash(rel) // inside the tree: the key is the same wherever the tree is
		}
		parts, err := goParts(dir)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			m.inputs = append(m.inputs, slashed(input, part))
		}
	}
	slices.Sort(m.inputs)
	return m, nil
}

// goParts lists what the Go tool reads of a module's folder: not what begins with a dot or an underscore, such as the .git
// and the _output of a Kubernetes work tree, which are large and change without a change to the sources.
func goParts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		part := e.Name()
		if info, err := os.Stat(filepath.Join(dir, part)); err == nil && info.IsDir() {
			part += "/"
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// replaced reports whether a folder stands in for a module.
func (m *module) replaced() bool { return len(m.inputs) > 2 }

// closure lists the folders of the module, relative to it, that a package in it is compiled from: its own and those of
// the module's packages that it imports, directly or not. Files of every platform count, so it may name too many, never
// too few. A package of another module has none.
func (m *module) closure(pkg string) []string {
	var found []string
	todo := []string{path.Clean(pkg)}
	if !strings.HasPrefix(pkg, "./") {
		return nil
	}
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		if slices.Contains(found, dir) {
			continue
		}
		found = append(found, dir)
		todo = append(todo, m.importsOf(dir)...)
	}
	slices.Sort(found)
	return found
}

// importsOf are the folders of the module that the package in one of them imports.
func (m *module) importsOf(dir string) []string { return m.read(dir).imports }

// heads sums up what decides which packages a package of the module is compiled from, besides the module's inputs: of each
// Go file in the folders it is compiled from, the name and the head, down to the last import. Code below that has no say.
func (m *module) heads(pkg string) string {
	h := sha256.New()
	for _, dir := range m.closure(pkg) {
		fmt.Fprintf(h, "%s\n%s", dir, m.read(dir).heads)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A goFolder is a folder of the module, read as far as its imports.
type goFolder struct {
	imports []string // folders of the module
	heads   string   // a line for each Go file: name and SHA-256 of its head
}

func (m *module) read(dir string) *goFolder {
	if known, ok := m.folders[dir]; ok {
		return known
	}
	f := &goFolder{}
	m.folders[dir] = f
	folder := filepath.Join(m.dir, filepath.FromSlash(dir))
	entries, _ := os.ReadDir(folder) // one that is missing is the Go tool's to report, and so is a file that does not parse
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		src, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			continue
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, e.Name(), src, parser.ImportsOnly)
		head := src
		if err == nil {
			end := parsed.Name.End()
			for _, spec := range parsed.Imports {
				end = max(end, spec.End())
				if p, err := strconv.Unquote(spec.Path.Value); err != nil {
					continue
				} else if p == m.path {
					f.imports = append(f.imports, ".")
				} else if rel, ok := strings.CutPrefix(p, m.path+"/"); ok {
					f.imports = append(f.imports, rel)
				}
			}
			head = src[:files.Position(end).Offset]
		}
		f.heads += fmt.Sprintf("%s %x\n", e.Name(), sha256.Sum256(head))
	}
	return f
}
