package input

import (
	"embed"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/module"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it names the members of the tarball of inputs.
var _ = recipe.Of("tree/input", sources)

// A List names what a release is made of besides its tree, by sums.
type List struct {
	Modules []module.Pinned `json:"modules"` // sorted; toolchains are among them
	Debian  []debian.Lock   `json:"debian"`  // one for each suite and time, with the packages that are needed
}

// ModuleFolders returns the folders of the Go modules in a tree that a release, slipway or its unit tests may need, by the names of its
// files: see [module.MayBeReleased].
func ModuleFolders(files []string) []string {
	var dirs []string
	for _, name := range files {
		if dir := path.Dir(name); path.Base(name) == "go.mod" && module.MayBeReleased(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// Read lists the inputs of the tree at root: what the go.sum files of its modules, by their folders, name, with toolchains; and the
// packages for some architectures, by Go's names, that the debian.lock files in other folders name.
func Read(root string, modules []string, toolchains []module.Pinned, locks, goarchs []string) (*List, error) {
	var l List
	if err := l.readModules(root, modules, toolchains); err != nil {
		return nil, err
	}
	return &l, l.readLocks(root, locks, goarchs)
}

func (l *List) readModules(root string, folders []string, toolchains []module.Pinned) error {
	all := map[module.Version]module.Pinned{}
	from := map[module.Version]string{}
	add := func(file string, p module.Pinned) error {
		known := all[p.Version]
		if differ(known.Sum, p.Sum) || differ(known.GoModSum, p.GoModSum) {
			return fmt.Errorf("%s has different sums in %s and %s", p.Version, from[p.Version], file)
		}
		known.Version = p.Version
		known.Sum, known.GoModSum = max(known.Sum, p.Sum), max(known.GoModSum, p.GoModSum)
		all[p.Version], from[p.Version] = known, file
		return nil
	}
	for _, folder := range folders {
		m, err := module.Load(root, folder)
		if err != nil {
			return err
		}
		for _, p := range m.Pinned() {
			if err := add(path.Join(folder, "go.sum"), p); err != nil {
				return err
			}
		}
	}
	for _, p := range toolchains {
		if err := add("release/release.yaml", p); err != nil {
			return err
		}
	}
	for _, p := range all {
		l.Modules = append(l.Modules, p)
	}
	slices.SortFunc(l.Modules, func(a, b module.Pinned) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// differ reports whether two sums are known and not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

func (l *List) readLocks(root string, folders, goarchs []string) error {
	seen := map[string]bool{}
	for _, folder := range folders {
		lock, err := debian.ReadLock(filepath.Join(root, filepath.FromSlash(folder), debian.LockFile))
		if err != nil {
			return err
		}
		some := debian.Lock{Suite: lock.Suite, Time: lock.Time}
		for _, goarch := range goarchs {
			for _, p := range lock.For(goarch) {
				if !seen[p.SHA256] {
					some.Packages = append(some.Packages, p)
				}
				seen[p.SHA256] = true // a package for all architectures is in the lock for each
			}
		}
		if len(some.Packages) > 0 {
			l.Debian = append(l.Debian, some)
		}
	}
	return nil
}

// Files lists the names of the list's files in a tree that was unpacked, sorted, without that of the sums.
func (l *List) Files() ([]string, error) {
	var names []string
	versions := map[string]bool{}
	for _, m := range l.Modules {
		at, err := m.ProxyPath()
		if err != nil {
			return nil, err
		}
		at = Modules + "/" + at
		names = append(names, at+".info", at+".mod")
		if m.Sum != "" {
			names = append(names, at+".zip")
		}
		versions[path.Dir(at)+"/list"] = true
	}
	for name := range versions {
		names = append(names, name)
	}
	for _, lock := range l.Debian {
		for _, p := range lock.Packages {
			names = append(names, Debian+"/"+p.FileName())
		}
	}
	slices.Sort(names)
	return names, nil
}
