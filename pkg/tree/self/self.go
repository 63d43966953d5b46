// Package self knows which slipway is running.
//
// A tree that is not slipway's own repository has the toolchain as a module: its go.mod requires a version of [Module]. The go command
// compiles it, and says in the program which version that was, with the sum of its code and those of all other modules. If the go.mod
// replaces the module by a folder, or if the tree is slipway's own repository, there is no version: a [Slipway] is then what its folder
// holds.
//
// The modules of others that slipway links are those that its own go.mod selects. Code of another version may make other bytes, and was
// never tested. The file linked.sum has the selection, and [Read] compares. The test in test/architecture writes it.
//
// What must never be in here: what else a tree has, and what a slipway is named for.
package self

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/source"
	"slipway.build/pkg/tree/worktree"
)

// Module is the path of slipway's module. In a fork that has another name, it is the fork's.
var Module = strings.TrimSuffix(reflect.TypeFor[Slipway]().PkgPath(), "/pkg/tree/self")

//go:embed linked.sum
var selection string // lines as in go.sum: module, version, sum

// A Slipway is the toolchain as it was compiled.
type Slipway struct {
	Module   module.Pinned       // of a version; in a fork, that of its own module
	Replaces string              // of a fork: the version of slipway's module that it stands in for, as PATH@VERSION
	Linked   []module.Dependency // of a version: the modules of others, on any system that slipway runs on

	Folder string // of a checkout, from the tree's root on, or absolute: "." is the tree itself; "" if it is not known
	Commit string // of a checkout, unless it is the tree
	Tree   string // of a checkout, unless it is the tree: see [source.Tree.Content]
	Dirty  bool   // whether the checkout is not what the commit has
}

// Read returns the running slipway, which works on the tree at root. The error says so if a module of others is not the one that slipway's
// own go.mod selects.
func Read(ctx context.Context, root string, getenv func(string) string) (*Slipway, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return read(ctx, info, selection, root, getenv)
}

func read(ctx context.Context, info *debug.BuildInfo, selection, root string, getenv func(string) string) (*Slipway, error) {
	linked := module.Linked(info)
	at := slices.IndexFunc(linked, func(d module.Dependency) bool {
		return d.Path == Module && (d.Sum != "" || d.Replace != (module.Version{}))
	})
	if at < 0 {
		return checkout(info, root)
	}
	d := linked[at]
	s := &Slipway{}
	if d.Folder() != "" {
		s.Folder = path.Clean(d.Folder())
		if err := s.look(ctx, root, getenv); err != nil {
			return nil, fmt.Errorf("go.mod replaces %s by a folder: %w", Module, err)
		}
	} else {
		s.Module = module.Pinned{Version: d.Code(), Sum: d.Sum}
		if d.Replace != (module.Version{}) {
			s.Replaces = module.Version{Path: d.Path, Version: d.Version}.String()
		}
	}
	var err error
	s.Linked, err = compare(linked, selection, d)
	return s, err
}

// IsOwn reports whether the tree at root is slipway's own repository. Others are distributions.
func IsOwn(root string) bool {
	m, err := module.Load(root, ".")
	return err == nil && m.Path == Module
}

// checkout returns the slipway that was compiled in its own repository. That is the tree, or else another folder, whose commit is known
// only if the go command wrote it into the program.
func checkout(info *debug.BuildInfo, root string) (*Slipway, error) {
	switch m, err := module.Load(root, "."); {
	case err == nil && m.Path == Module:
		return &Slipway{Folder: "."}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	s := &Slipway{}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			s.Commit = setting.Value
		case "vcs.modified":
			s.Dirty = setting.Value == "true"
		}
	}
	return s, nil
}

// look finds out what is in the folder of a checkout.
func (s *Slipway) look(ctx context.Context, root string, getenv func(string) string) error {
	dir := filepath.FromSlash(s.Folder)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	repo := worktree.Once(dir, getenv)
	files, err := source.Find(ctx, dir, repo)
	if err != nil {
		return err
	}
	if _, s.Tree, err = files.Content(ctx); err != nil {
		return err
	}
	r, err := repo()
	if errors.Is(err, worktree.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	state, err := r.State(ctx)
	s.Commit, s.Dirty = state.Commit, state.Dirty
	return err
}

// A SelectionError says that a slipway links a module that is not the one of its own go.mod.
type SelectionError struct {
	Slipway           string // as MODULE@VERSION
	Module, Want, Got string // versions, with their sums if only these differ
}

func (e *SelectionError) Error() string {
	return fmt.Sprintf("go.mod selects %s %s, and %s is made with %s: require that version, and nothing that wants a later one",
		e.Module, e.Got, e.Slipway, e.Want)
}

// compare returns the selection, or an error if the program links something else.
func compare(linked []module.Dependency, selection string, slipway module.Dependency) ([]module.Dependency, error) {
	var selected []module.Dependency
	var errs []error
	for line := range strings.Lines(selection) {
		f := strings.Fields(line)
		want := module.Dependency{Path: f[0], Version: f[1], Sum: f[2]}
		selected = append(selected, want)
		i := slices.IndexFunc(linked, func(d module.Dependency) bool { return d.Path == want.Path })
		if i < 0 || linked[i] == want {
			continue
		}
		e := &SelectionError{cmp.Or(slipway.Folder(), slipway.Code().String()), want.Path, want.Version, linked[i].Version}
		if got := linked[i]; got.Replace != (module.Version{}) {
			e.Got += " => " + got.Replace.String()
		} else if got.Version == want.Version {
			e.Got, e.Want = e.Got+" "+got.Sum, e.Want+" "+want.Sum
		}
		errs = append(errs, e)
	}
	return selected, errors.Join(errs...)
}

// Outside returns a folder outside of the tree at root by which its go.mod replaces slipway or another module, as it is written there, or
// "".
func Outside(root string) (string, error) {
	m, err := module.Load(root, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return m.FolderOutside(), nil
}
