package kubetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// A Generator generates code again whose sources are patched.
type Generator struct {
	Recipe string // identifies its code and versions

	// Run generates the code. It may leave temporary files in tmp.
	Run func(ctx context.Context, patched *patch.Overlay, tmp string) error
}

// change returns the change that the tree's patches for Kubernetes make to the copy of its repository.
func (t Tree) change(mod *module.Module) (upstream.Change, error) {
	patches, err := patch.LoadProject(t.Root, "")
	if err != nil || len(patches) == 0 {
		return upstream.Change{}, err
	}
	key := sha256.New()
	fmt.Fprintln(key, patch.Code, t.Generator.Recipe)
	for _, p := range patches {
		fmt.Fprintln(key, p.Name, p.SHA256)
	}
	return upstream.Change{
		Key: hex.EncodeToString(key.Sum(nil)),
		Make: func(ctx context.Context, copied string) (map[string]upstream.File, error) {
			repository, err := patch.KubernetesRepository(mod)
			if err != nil {
				return nil, err
			}
			overlay := patch.NewOverlay(repository, patch.Dir(copied))
			if err := apply(overlay, patches); err != nil {
				return nil, err
			}
			if err := t.generate(ctx, overlay); err != nil {
				return nil, err
			}
			files := map[string]upstream.File{}
			for name, c := range overlay.Changes() {
				files[name] = upstream.File{Data: c.Data, Exec: c.Exec, Removed: c.Removed}
			}
			return files, nil
		},
	}, nil
}

// generate generates code whose sources are patched.
func (t Tree) generate(ctx context.Context, patched *patch.Overlay) error {
	if t.Generator.Run == nil {
		return nil
	}
	tmp := filepath.Join(t.Root, filepath.FromSlash(Folder), "generate.tmp") // one name: a killed run may have left it
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o777)); err != nil {
		return err
	}
	return errors.Join(t.Generator.Run(ctx, patched, tmp), os.RemoveAll(tmp))
}

// Patched reports whether the tree has patches for Kubernetes.
func Patched(root string) (bool, error) {
	patches, err := patch.LoadProject(root, "")
	return len(patches) > 0, err
}

// apply applies patches. The error names all that do not apply.
func apply(overlay *patch.Overlay, patches []*patch.Patch) error {
	reports, err := overlay.Check(patches)
	if err != nil {
		return err
	}
	var conflicts []error
	for _, report := range reports {
		if report.Conflict != nil {
			conflicts = append(conflicts, report.Conflict)
		}
	}
	return errors.Join(conflicts...)
}

// Touched returns the import paths of packages in which the tree's patches for Kubernetes change files, and these files as they are
// without the patches, by their paths in the repository: nil for a new file. Without patches it returns none.
func (s *Sources) Touched() (packages []string, before map[string][]byte, err error) {
	patches, err := patch.LoadProject(s.Root, "")
	if err != nil || len(patches) == 0 {
		return nil, nil, err
	}
	original, err := s.Original()
	if err != nil {
		return nil, nil, err
	}
	before = map[string][]byte{}
	for _, p := range patches {
		for _, name := range p.Paths() {
			data, err := original.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
			before[name] = data
		}
	}
	return original.Packages(patches), before, nil
}

// Original returns Kubernetes' repository as it is without the tree's patches.
func (s *Sources) Original() (patch.Modules, error) {
	mod, err := module.Load(s.Root, s.Components)
	if err != nil {
		return patch.Modules{}, err
	}
	repository, err := patch.KubernetesRepository(mod)
	return patch.Modules{Repository: repository, Dir: func(p patch.Place) (string, error) { return s.originals[p.Module], nil }}, err
}

// Affected returns the import paths of packages with unit tests that the tree's patches for Kubernetes change, or that import a changed
// package directly, also in tests. Without patches it returns none.
func (s *Sources) Affected(ctx context.Context) ([]string, error) {
	touched, _, err := s.Touched()
	if err != nil || len(touched) == 0 {
		return nil, err
	}
	units, err := s.units(ctx)
	var affected []string
	for _, p := range units {
		imports := slices.Concat([]string{p.ImportPath}, p.Imports, p.TestImports, p.XTestImports)
		if slices.ContainsFunc(imports, func(pkg string) bool { return slices.Contains(touched, pkg) }) {
			affected = append(affected, p.ImportPath)
		}
	}
	return affected, err
}
