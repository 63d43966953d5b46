package catalog

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/suggest"
	inventory "slipway.build/pkg/tree/module"
)

// A module is a Go module that binaries are compiled in: its folder, and what its go.mod says.
type module struct {
	*inventory.Module
	dir       string            // where it is
	name      string            // its folder as the catalog writes it
	path      string            // import path
	goVersion string            // that its go.mod asks for: "1.26.0"
	requires  map[string]string // versions of modules, by path
}

func loadModule(root, name string) (*module, error) {
	if !isFolder(name) {
		return nil, fmt.Errorf("%q is not a folder of the repository, written with slashes", name)
	}
	loaded, err := inventory.Load(root, name)
	if err != nil {
		return nil, err
	}
	m := &module{loaded, loaded.Dir, name, loaded.Path, loaded.Go, map[string]string{}}
	for _, r := range loaded.Requires {
		m.requires[r.Path] = r.Version
	}
	return m, nil
}

// find returns why there is no such package for a binary, or nil.
func (m *module) find(pkg string, test bool) error {
	dir, local := strings.CutPrefix(pkg, "./")
	if local {
		return m.findLocal(dir, test)
	}
	if err := gomodule.CheckImportPath(pkg); err != nil {
		return err
	}
	if m.version(pkg) != "" {
		return nil
	}
	similar := slices.Collect(maps.Keys(m.requires))
	// The folder of the module itself, written without "./".
	dir = strings.TrimPrefix(strings.TrimPrefix(pkg, m.path+"/"), m.name+"/")
	if m.findLocal(dir, test) == nil {
		return fmt.Errorf("no module that %s requires has package %s; did you mean ./%s?", m.file(), pkg, dir)
	}
	return fmt.Errorf("no module that %s requires has package %s%s", m.file(), pkg, suggest.DidYouMean(nearModules(pkg, similar)))
}

// version returns the version of the required module that has a package, or "".
func (m *module) version(pkg string) string { return m.Version(pkg) }

func (m *module) findLocal(dir string, test bool) error {
	if !isFolder(dir) {
		return fmt.Errorf("%q is not a folder below %s, written with slashes", "./"+dir, m.name)
	}
	entries, err := os.ReadDir(filepath.Join(m.dir, filepath.FromSlash(dir)))
	if err != nil {
		return fmt.Errorf("there is no folder %s%s", path.Join(m.name, dir), suggest.DidYouMean(m.nearFolders(dir)))
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && strings.HasSuffix(e.Name(), "_test.go") == test {
			return nil
		}
	}
	if test {
		return fmt.Errorf("%s has no _test.go files", path.Join(m.name, dir))
	}
	return fmt.Errorf("%s has no .go files", path.Join(m.name, dir))
}

func (m *module) file() string { return path.Join(m.name, "go.mod") }

// nearFolders returns folders beside a missing one of which it may be a slip, as packages.
func (m *module) nearFolders(dir string) []string {
	parent := path.Dir(dir)
	var found []string
	for _, f := range suggest.Near(path.Base(dir), folders(filepath.Join(m.dir, filepath.FromSlash(parent)))) {
		found = append(found, "./"+path.Join(parent, f))
	}
	return found
}

// nearModules returns modules of which a package's import path begins with a slip.
func nearModules(pkg string, modules []string) []string {
	elems := strings.Split(pkg, "/")
	var found []string
	for n := len(elems); n > 0 && len(found) == 0; n-- {
		var sameLength []string
		for _, m := range modules {
			if strings.Count(m, "/") == n-1 {
				sameLength = append(sameLength, m)
			}
		}
		found = suggest.Near(strings.Join(elems[:n], "/"), sameLength)
	}
	return found
}

// folders returns the names of the folders in one: none if it is not there.
func folders(dir string) []string {
	entries, _ := os.ReadDir(dir) // one that can't be read has none that could be meant
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// isFolder reports whether a name is a clean, slash-separated path that stays below where it starts.
func isFolder(name string) bool {
	return name != "." && fs.ValidPath(name) && !strings.Contains(name, `\`)
}
