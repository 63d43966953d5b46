package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	gomodule "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/suggest"
	inventory "slipway.build/pkg/tree/module"
)

// A module is a Go module that binaries are compiled in.
type module struct{ *inventory.Module }

func loadModule(root, name string) (*module, error) {
	if !isFolder(name) {
		return nil, fmt.Errorf("%q is not a folder of the repository, written with slashes", name)
	}
	if !inventory.MayBeReleased(name) {
		return nil, fmt.Errorf("no release is made of %s: use a folder outside of test and testdata, with no name that begins with _ or a dot",
			name)
	}
	m, err := inventory.Load(root, name)
	if err != nil {
		return nil, err
	}
	return &module{m}, nil
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
	if m.Version(pkg) != "" {
		return nil
	}
	// The folder of the module itself, written without "./".
	dir = strings.TrimPrefix(strings.TrimPrefix(pkg, m.Path+"/"), m.Name+"/")
	if m.findLocal(dir, test) == nil {
		return fmt.Errorf("no module that %s requires has package %s; did you mean ./%s?", m.file(), pkg, dir)
	}
	return fmt.Errorf("no module that %s requires has package %s%s", m.file(), pkg, suggest.DidYouMean(m.nearModules(pkg)))
}

func (m *module) findLocal(dir string, test bool) error {
	if !isFolder(dir) {
		return fmt.Errorf("%q is not a folder below %s, written with slashes", "./"+dir, m.Name)
	}
	entries, err := os.ReadDir(filepath.Join(m.Dir, filepath.FromSlash(dir)))
	if err != nil {
		return fmt.Errorf("there is no folder %s%s", path.Join(m.Name, dir), suggest.DidYouMean(m.nearFolders(dir)))
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".go") && strings.HasSuffix(e.Name(), "_test.go") == test {
			return nil
		}
	}
	if test {
		return fmt.Errorf("%s has no _test.go files", path.Join(m.Name, dir))
	}
	return fmt.Errorf("%s has no .go files", path.Join(m.Name, dir))
}

func (m *module) file() string { return path.Join(m.Name, "go.mod") }

// nearFolders returns packages beside a missing folder whose names are similar to its name.
func (m *module) nearFolders(dir string) []string {
	parent := path.Dir(dir)
	var found []string
	for _, f := range suggest.Near(path.Base(dir), folders(filepath.Join(m.Dir, filepath.FromSlash(parent)))) {
		found = append(found, "./"+path.Join(parent, f))
	}
	return found
}

// nearModules returns required modules whose paths are similar to the beginning of a package's import path.
func (m *module) nearModules(pkg string) []string {
	elems := strings.Split(pkg, "/")
	var found []string
	for n := len(elems); n > 0 && len(found) == 0; n-- {
		var sameLength []string
		for _, r := range m.Requires {
			if strings.Count(r.Path, "/") == n-1 {
				sameLength = append(sameLength, r.Path)
			}
		}
		found = suggest.Near(strings.Join(elems[:n], "/"), sameLength)
	}
	return found
}

// folders returns the names of the folders in a folder, or none if it cannot be read.
func folders(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// isFolder reports whether a name is a clean, slash-separated path that does not leave its starting folder.
func isFolder(name string) bool {
	return name != "." && fs.ValidPath(name) && !strings.Contains(name, `\`)
}
