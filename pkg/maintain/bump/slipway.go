package bump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	goversion "go/version"

	"slipway.build/pkg/maintain/kit"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/self"
)

// toSlipway moves a distribution to a version of slipway, or to the newest: the requirement, and what the kit has changed since.
func (p *preparation) toSlipway(version string) step {
	return func(ctx context.Context) error {
		own, err := module.Load(p.Root, ".")
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("the tree has no go.mod at its top, which would name a version of slipway")
		}
		if err != nil {
			return err
		}
		has, ok := own.Require(self.Module)
		if !ok {
			return fmt.Errorf("go.mod requires no %s: in slipway's own repository, git has its versions", self.Module)
		}
		if has.Folder() != "" && version == "" {
			return fmt.Errorf("go.mod replaces %s by the folder %s: its versions are there, or name one", self.Module, has.Folder())
		}
		if version == "" {
			newer, err := p.proxy.newer(ctx, self.Module, has.Version)
			if err != nil || len(newer) == 0 {
				return err
			}
			version = newer[len(newer)-1]
		}
		return p.moveSlipway(ctx, has, version)
	}
}

func (p *preparation) moveSlipway(ctx context.Context, has module.Requirement, version string) error {
	all, err := p.proxy.fetch(ctx, requirement{Path: self.Module, Version: version})
	if err != nil {
		return err
	}
	to := all[0]
	from := filepath.FromSlash(has.Folder())
	switch {
	case from == "":
		was, err := p.proxy.fetch(ctx, requirement{Path: has.Code().Path, Version: has.Code().Version})
		if err != nil {
			return err
		}
		from = was[0].Dir
	case !filepath.IsAbs(from):
		from = filepath.Join(p.Root, from)
	}
	if pin := p.catalog.Own().Version; goversion.Compare("go"+to.mod.Go.Version, pin) > 0 {
		return fmt.Errorf("slipway %s needs Go %s, and release.yaml pins %s: move that first", version, to.mod.Go.Version, pin)
	}
	old, err := p.kit(from, kit.Toolchain{Path: self.Module, Version: has.Version, Folder: has.Folder()})
	if err != nil {
		return err
	}
	new, err := p.kit(to.Dir, kit.Toolchain{Path: self.Module, Version: version, Sum: to.Sum})
	if err != nil {
		return err
	}
	u, err := kit.NewUpgrade(old, new, p.read, p.merge(ctx))
	if err != nil {
		return err
	}
	p.move("slipway", cmp.Or(has.Folder(), has.Version), version, "")
	for _, name := range u.Merged {
		p.note("%s: the kit's changes are merged with yours", name)
	}
	for _, name := range u.Remove {
		if err := os.Remove(p.file(name)); err != nil {
			return err
		}
	}
	for name, f := range u.Write {
		mode := os.FileMode(0o666)
		if f.Executable {
			mode = 0o777
		}
		if err := errors.Join(os.MkdirAll(p.file(path.Dir(name)), 0o777), os.WriteFile(p.file(name), f.Data, mode)); err != nil {
			return err
		}
	}
	if p.Conflicts = u.Conflicts; len(p.Conflicts) > 0 {
		return nil
	}
	p.draft, err = catalog.ReadDraft(copyDir(p.Root))
	return err
}

// kit returns the kit in a folder of slipway's sources, as it is for this distribution.
func (p *preparation) kit(dir string, t kit.Toolchain) ([]kit.File, error) {
	archive, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(kit.ArchiveFile)))
	if err != nil {
		return nil, fmt.Errorf("the kit of this slipway: %w", err)
	}
	components, err := module.Load(p.Root, p.catalog.Module)
	if err != nil {
		return nil, err
	}
	readme, _, err := p.read("README.md")
	if err != nil {
		return nil, err
	}
	title, _, _ := strings.Cut(string(readme), "\n")
	return kit.Options{
		Name: strings.TrimPrefix(title, "# "), Module: strings.TrimSuffix(components.Path, "/"+p.catalog.Module), Toolchain: t,
	}.Of(archive)
}

// read reads a file of the copy, if there is one.
func (p *preparation) read(name string) (data []byte, exists bool, err error) {
	data, err = os.ReadFile(p.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// merge merges by git, as `git merge` does.
func (p *preparation) merge(ctx context.Context) kit.Merge {
	return func(theirs, old, new []byte) ([]byte, bool, error) {
		dir, err := os.MkdirTemp(workDir(p.Root), "merge-")
		if err != nil {
			return nil, false, err
		}
		defer os.RemoveAll(dir)
		args := []string{"merge-file", "-L", "yours", "-L", "the kit before", "-L", "the kit now"}
		for i, data := range [][]byte{theirs, old, new} {
			name := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(name, data, 0o666); err != nil {
				return nil, false, err
			}
			args = append(args, name)
		}
		_, err = p.repo.Run(ctx, nil, args...) // writes the first file
		exit, failed := errors.AsType[*exec.ExitError](err)
		if failed && exit.ExitCode() > 0 && exit.ExitCode() < 128 { // the number of conflicts
			err = nil
		}
		if err != nil {
			return nil, false, err
		}
		merged, err := os.ReadFile(filepath.Join(dir, "0"))
		return merged, !failed, err
	}
}
