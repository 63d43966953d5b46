package license

import (
	"debug/buildinfo"
	"errors"
	"fmt"
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
	Dir     string // where its files are
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

// Modules reads from the binaries which modules are linked into at least one of them: sorted by path, each
// once. Their folders are in modCache (GOMODCACHE), or for one that is replaced by a folder, relative to
// modRoot, the folder of the go.mod that the binaries were built with.
func Modules(binaries []string, modCache, modRoot string) ([]Module, error) {
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
	return merge(linked, modCache, modRoot)
}

// A linkage is what one binary says of itself.
type linkage struct {
	binary string
	info   *debug.BuildInfo
}

func merge(linked []linkage, modCache, modRoot string) ([]Module, error) {
	type claim struct {
		Module
		binary string
	}
	claims := make(map[string]claim)
	var errs []error
	for _, l := range linked {
		for _, d := range modulesOf(l.info) {
			m, err := locate(d, modCache, modRoot)
			if err != nil {
				return nil, fmt.Errorf("license %s: %w", l.binary, err)
			}
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

func locate(d *debug.Module, modCache, modRoot string) (Module, error) {
	m := Module{Path: d.Path, Version: d.Version, Origin: d.Path}
	if r := d.Replace; r != nil {
		if isFolder(r.Path) {
			m.Version, m.Origin, m.Dir = "", "", filepath.FromSlash(r.Path)
			if !filepath.IsAbs(m.Dir) {
				m.Dir = filepath.Join(modRoot, m.Dir)
			}
			return m, nil
		}
		m.Version, m.Origin = r.Version, r.Path
	}
	var err error
	if m.Dir, err = cached(m, modCache); err != nil {
		return Module{}, err
	}
	return m, nil
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
