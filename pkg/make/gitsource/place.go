package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/module"
)

// Place puts the modules that the tree at root takes of its source into the module cache, if they are not there. It asks the module proxy
// first, since a shared cache or a later release may have them, and makes them otherwise. Under an embargo it asks nobody. Their sums must
// be those of the tree's go.sum files. A tree without a source has nothing to place.
func Place(ctx context.Context, g *toolchain.Go, root string, c *catalog.Catalog, say func(string)) error {
	if c.Source == (catalog.Source{}) {
		return nil
	}
	wanted, err := Taken(root, c.Kubernetes)
	if err != nil {
		return err
	}
	missing, err := Missing(g, wanted)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !time.Now().Before(c.Embargo) && g.Fetch(ctx, missing[:1]) == nil && g.Fetch(ctx, missing) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if say != nil {
		say(fmt.Sprintf("making Kubernetes' modules of commit %.12s of %s", c.Source.Commit, tail.Redact(c.Source.Repository)))
	}
	tmp := filepath.Join(root, filepath.FromSlash(folder.State), "tmp") // what a killed run leaves there is removed by the next one
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return err
	}
	if tmp, err = os.MkdirTemp(tmp, "git-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	dir := filepath.Join(tmp, "modules")
	made, _, err := Make(ctx, c.Source, c.Kubernetes, dir)
	if err != nil {
		return fmt.Errorf("%s has no module proxy to come from: %w", missing[0].Version, err)
	}
	if err := differ(made, wanted); err != nil {
		return fmt.Errorf("the source in %s is not what go.sum files have the sums of: %w", catalog.File, err)
	}
	return Install(ctx, g, dir, missing)
}

// Install puts modules that Make has made in a folder into the module cache.
func Install(ctx context.Context, g *toolchain.Go, dir string, modules []module.Pinned) error {
	return g.WithProxies(dir).Fetch(ctx, modules)
}

// Taken lists the modules of a version of Kubernetes that the go.sum files of a tree name.
func Taken(root, version string) ([]module.Pinned, error) {
	taken := map[module.Version]module.Pinned{}
	var order []module.Version
	files, err := SumFiles(root)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		all, err := module.ReadSums(name)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if !belongs(m.Version, version) {
				continue
			}
			known, ok := taken[m.Version]
			if !ok {
				order = append(order, m.Version)
			}
			known.Version = m.Version
			known.Sum, known.GoModSum = max(known.Sum, m.Sum), max(known.GoModSum, m.GoModSum)
			taken[m.Version] = known
		}
	}
	list := make([]module.Pinned, len(order))
	for i, v := range order {
		list[i] = taken[v]
	}
	return list, nil
}

// SumFiles lists the go.sum files of a tree's modules, wherever they may be in it.
func SumFiles(root string) ([]string, error) {
	var found []string
	for _, pattern := range []string{"*/go.sum", "*/*/go.sum", "*/*/*/go.sum"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if !strings.HasPrefix(name, "_") { // what is made of the tree
				found = append(found, filepath.Join(root, filepath.FromSlash(name)))
			}
		}
	}
	return found, nil
}

// belongs reports whether a module at a version is of a version of Kubernetes.
func belongs(m module.Version, version string) bool {
	rest, ok := strings.CutPrefix(m.Path, "k8s.io/")
	return ok && !strings.Contains(rest, "/") && (m.Path == kubernetes && m.Version == version || m.Version == module.Staging(version))
}

// Missing returns those of some modules that the module cache does not have. The error is a *[ConflictError] if it has one of them with
// other code.
func Missing(g *toolchain.Go, modules []module.Pinned) ([]module.Pinned, error) {
	var missing []module.Pinned
	for _, m := range modules {
		at, err := m.ProxyPath()
		if err != nil {
			return nil, err
		}
		at = filepath.Join(g.ModCache, "cache", "download", filepath.FromSlash(at))
		name := at + ".ziphash"
		if m.Sum == "" { // only its go.mod counts
			name = at + ".mod"
		}
		switch data, err := os.ReadFile(name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, m)
		case err != nil:
			return nil, err
		case m.Sum != "" && strings.TrimSpace(string(data)) != m.Sum:
			return nil, &ConflictError{m.Version, strings.TrimSpace(string(data)), m.Sum}
		}
	}
	return missing, nil
}

// Forget removes modules from the module cache.
func Forget(g *toolchain.Go, modules []module.Pinned) error {
	for _, m := range modules {
		at, err1 := m.ProxyPath()
		folder, err2 := m.CachePath()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		code := filepath.Join(g.ModCache, filepath.FromSlash(folder))
		err := filepath.WalkDir(code, func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() { // the go command makes them read-only
				err = os.Chmod(name, 0o777)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(code); err != nil {
			return err
		}
		at = filepath.Join(g.ModCache, "cache", "download", filepath.FromSlash(at))
		for _, suffix := range []string{".ziphash", ".zip", ".mod", ".info"} { // without the first, the rest does not count
			if err := os.Remove(at + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// differ returns an error that names the first module that has other code in two lists.
func differ(made, wanted []module.Pinned) error {
	sums := map[module.Version]module.Pinned{}
	for _, m := range made {
		sums[m.Version] = m
	}
	for _, want := range wanted {
		got, ok := sums[want.Version]
		if !ok {
			return fmt.Errorf("the commit has no module %s", want.Path)
		}
		if want.Sum != "" && want.Sum != got.Sum || want.GoModSum != "" && want.GoModSum != got.GoModSum {
			return fmt.Errorf("%s has the sum %s, want %s", got.Version, got.Sum, want.Sum)
		}
	}
	return nil
}

// A ConflictError says that the module cache has a version of a module with other code.
type ConflictError struct {
	Version   module.Version
	Has, Want string // sums
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the module cache has %s with other code: its sum is %s there, and %s here. A version has one code, for ever: "+
		"give the other one a version of its own", e.Version, e.Has, e.Want)
}
