package license

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// A Module is one whose code is linked into a binary.
type Module struct {
	Path    string // as its packages are imported
	Version string // of the code that was linked: a replacement's, if there is one; empty for a folder
	Origin  string // path of the module that the code is from: Path, or that of a replacement; empty for a folder
	Dir     string `json:",omitempty"` // of a folder, relative to that of the go.mod unless it is absolute; or else of the module cache's
}

// String is the module as the index and errors name it.
func (m Module) String() string { return m.Path + "@" + m.revision() }

// revision says which code of the module it is, without ever naming a folder.
func (m Module) revision() string {
	switch {
	case m.Origin == "":
		return "local"
	case m.Origin != m.Path:
		return m.Origin + "@" + m.Version
	}
	return m.Version
}

// List writes a file that says which modules are linked into at least one of the binaries. It names no folder of the machine but
// those that a go.mod names so.
func List(file string, binaries []string) error {
	modules, err := Modules(binaries)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(modules, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// readList reads what List wrote.
func readList(file string) ([]Module, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("license: list of modules: %w", err)
	}
	var modules []Module
	if err := json.Unmarshal(text, &modules); err != nil {
		return nil, fmt.Errorf("license: list of modules %s: %w", file, err)
	}
	return modules, nil
}

// Modules reads from the binaries which modules are linked into at least one of them: sorted by path, each
// once. Only those that are replaced by a folder have a Dir.
func Modules(binaries []string) ([]Module, error) {
	if len(binaries) == 0 {
		return nil, errors.New("license: no binaries")
	}
	linked := make([]linkage, 0, len(binaries))
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("license: %w", err) // names the file
		}
		if info.Main.Path == "" && len(info.Deps) == 0 { // rules_go names no main module
			return nil, fmt.Errorf("license %s: no module in its build information", name)
		}
		linked = append(linked, linkage{name, info})
	}
	return merge(linked)
}

// A linkage is what one binary says of itself.
type linkage struct {
	binary string
	info   *debug.BuildInfo
}

func merge(linked []linkage) ([]Module, error) {
	type claim struct {
		Module
		binary string
	}
	claims := make(map[string]claim)
	var errs []error
	for _, l := range linked {
		for _, d := range modulesOf(l.info) {
			m := moduleOf(d)
			first, ok := claims[m.Path]
			if !ok {
				claims[m.Path] = claim{m, l.binary}
				continue
			}
			if first.Module != m {
				errs = append(errs, fmt.Errorf("license %s: has %s, but %s has %s; build both again", l.binary, m, first.binary, first))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	modules := make([]Module, 0, len(claims))
	for _, c := range claims {
		modules = append(modules, c.Module)
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// modulesOf is all modules of a binary but the one whose working folder was compiled. That one is told by
// what it lacks: a checksum, which has every module of the cache, and a replacement. Its version is no
// sign, as one made from version control looks like any other.
func modulesOf(info *debug.BuildInfo) []*debug.Module {
	if info.Main.Sum == "" && info.Main.Replace == nil {
		return info.Deps
	}
	return append([]*debug.Module{&info.Main}, info.Deps...)
}

func moduleOf(d *debug.Module) Module {
	switch r := d.Replace; {
	case r == nil:
		return Module{Path: d.Path, Version: d.Version, Origin: d.Path}
	case isFolder(r.Path):
		return Module{Path: d.Path, Dir: r.Path}
	default:
		return Module{Path: d.Path, Version: r.Version, Origin: r.Path}
	}
}

// locate completes a module with where its files are on this machine.
func (src Source) locate(m *Module) (err error) {
	switch {
	case m.Origin != "":
		m.Dir, err = cached(*m, src.ModCache)
	case filepath.IsAbs(filepath.FromSlash(m.Dir)):
		m.Dir = filepath.FromSlash(m.Dir)
	default:
		m.Dir = filepath.Join(src.ModRoot, filepath.FromSlash(m.Dir))
	}
	return err
}

// cached is where a module is in a module cache.
func cached(m Module, modCache string) (string, error) {
	path, err := module.EscapePath(m.Origin)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", fmt.Errorf("module %s: %w", m.Path, err)
	}
	return filepath.Join(modCache, filepath.FromSlash(path)+"@"+version), nil
}

// isFolder reports whether the new side of a replacement is a folder, by go.mod's own rule: a folder begins
// with ./ or ../ or is absolute, a module path never does.
func isFolder(path string) bool {
	slashed := filepath.ToSlash(path)
	return slashed == "." || slashed == ".." || strings.HasPrefix(slashed, "./") || strings.HasPrefix(slashed, "../") ||
		strings.HasPrefix(slashed, "/") || filepath.IsAbs(path)
}
