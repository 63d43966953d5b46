package license

import (
	"path/filepath"

	"slipway.build/pkg/tree/module"
)

// A Module is a module whose code is linked into a binary.
type Module struct {
	module.Dependency
	Dir string // where its files are on this machine
}

// String returns the module as the index and errors name it.
func (m Module) String() string { return m.Path + "@" + m.revision() }

// localRevision is the revision of a module that is a folder.
const localRevision = "local"

// revision says which code of the module it is, without ever naming a folder.
func (m Module) revision() string {
	switch code := m.Code(); {
	case m.Folder() != "":
		return localRevision
	case code.Path != m.Path:
		return code.String()
	default:
		return code.Version
	}
}

// readList reads a list of modules that package module wrote.
func readList(file string) ([]Module, error) {
	dependencies, err := module.ReadLists(file)
	modules := make([]Module, len(dependencies))
	for i, d := range dependencies {
		modules[i].Dependency = d
	}
	return modules, err
}

// locate finds out where a module's files are on this machine.
func (src Source) locate(m *Module) error {
	if folder := filepath.FromSlash(m.Folder()); folder != "" {
		m.Dir = folder
		if !filepath.IsAbs(folder) {
			m.Dir = filepath.Join(src.ModRoot, folder)
		}
		return nil
	}
	dir, err := m.Code().CachePath()
	m.Dir = filepath.Join(src.ModCache, filepath.FromSlash(dir))
	return err
}
