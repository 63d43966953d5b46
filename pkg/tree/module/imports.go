package module

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
)

// A folder has the imports of the Go files in a folder of the module.
type folder struct {
	imports []string // folders of the module
	heads   string   // a line for each Go file: name and SHA-256 of its head
}

// Closure lists the folders, relative to the module's, that a package ("./kubelet") is compiled from: its own, and those
// of the module's packages that it imports, directly or not. Files of every platform count, so the list may be too long,
// never too short. It is empty for a package of another module.
func (m *Module) Closure(pkg string) []string {
	if !strings.HasPrefix(pkg, "./") {
		return nil
	}
	var found []string
	todo := []string{path.Clean(pkg)}
	for len(todo) > 0 {
		dir := todo[0]
		todo = todo[1:]
		if slices.Contains(found, dir) {
			continue
		}
		found = append(found, dir)
		todo = append(todo, m.read(dir).imports...)
	}
	slices.Sort(found)
	return found
}

// Heads returns a digest of what decides, besides Inputs, which packages a package is compiled from: name and head of each
// Go file in its closure, down to the last import. Code below the imports has no influence.
func (m *Module) Heads(pkg string) string {
	h := sha256.New()
	for _, dir := range m.Closure(pkg) {
		fmt.Fprintf(h, "%s\n%s", dir, m.read(dir).heads)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// read reads the imports in a folder, once. The Go command reports folders that are missing and files that do not parse.
func (m *Module) read(dir string) *folder {
	if known, ok := m.folders[dir]; ok {
		return known
	}
	f := &folder{}
	m.folders[dir] = f
	in := filepath.Join(m.Dir, filepath.FromSlash(dir))
	entries, _ := os.ReadDir(in)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		src, err := os.ReadFile(filepath.Join(in, e.Name()))
		if err != nil {
			continue
		}
		head := src
		files := token.NewFileSet()
		if parsed, err := parser.ParseFile(files, e.Name(), src, parser.ImportsOnly); err == nil {
			end := parsed.Name.End()
			for _, spec := range parsed.Imports {
				end = max(end, spec.End())
				if p, err := strconv.Unquote(spec.Path.Value); err == nil && within(p, m.Path) {
					f.imports = append(f.imports, path.Clean(strings.TrimPrefix(p[len(m.Path):], "/")))
				}
			}
			head = src[:files.Position(end).Offset]
		}
		f.heads += fmt.Sprintf("%s %x\n", e.Name(), sha256.Sum256(head))
	}
	return f
}
