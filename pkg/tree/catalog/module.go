package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// ProjectModules returns the requirements of another project's go.mod that are the project itself, and have its version: those that have
// the main packages of its binaries. If these are of this tree, such as CoreDNS's, they are what the go.mod requires in the image's
// version.
func (c *Catalog) ProjectModules(m *inventory.Module) []inventory.Requirement {
	var found []inventory.Requirement
	add := func(r inventory.Requirement) {
		known := func(f inventory.Requirement) bool { return f.Path == r.Path }
		if !slices.ContainsFunc(found, known) && r.Folder() == "" {
			found = append(found, r)
		}
	}
	for _, b := range c.Binaries {
		if provider, ok := m.Provider(b.Package); ok && b.Module == m.Name {
			add(provider)
		}
	}
	images := c.ProjectImages(m.Name)
	if len(found) > 0 || len(images) == 0 {
		return found
	}
	for _, r := range m.Requires {
		if r.Direct && r.Version == ModuleVersion(images[0].Version) {
			add(r)
		}
	}
	return found
}

// ProjectImages returns the images that have the version of the project in a folder, in the order of its binaries.
func (c *Catalog) ProjectImages(folder string) []Image {
	var found []Image
	for _, b := range c.Binaries {
		for _, im := range c.Images {
			if b.Module == folder && im.Binary == b.Name && im.Versioned() && !im.In(Test) {
				found = append(found, im)
			}
		}
	}
	return found
}

// ModuleVersion returns the module version that an image's version names: v3.7.0 for 3.7.0-0, where the last number counts builds of
// the image.
func ModuleVersion(image string) string {
	version, _, _ := strings.Cut(image, "-")
	return "v" + strings.TrimPrefix(version, "v")
}

// ProjectOf returns the name of the project, a folder below images, of a binary in the tree at root, if a module is the project itself;
// otherwise "".
func (c *Catalog) ProjectOf(root, binary, modulePath string) string {
	b, ok := c.Binary(strings.TrimSuffix(binary, ".exe"))
	if !ok || c.IsComponent(b) {
		return ""
	}
	m, err := inventory.Load(root, b.Module)
	if err != nil {
		return ""
	}
	own := c.ProjectModules(m)
	if !slices.ContainsFunc(own, func(r inventory.Requirement) bool { return r.Path == modulePath }) {
		return ""
	}
	return path.Base(b.Module)
}
