package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/build/road"
	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/tree/module"
)

// An OutsideError says that containers cannot get what a path leads to.
type OutsideError struct {
	Where string // file:line
	What  string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s: %s, which is outside of the tree, but containers only get the tree", e.Where, e.What)
}

// checkModules returns an *OutsideError if a module is replaced by a folder outside of the tree.
func (r *Road) checkModules() error {
	for _, dir := range r.Modules {
		m, err := module.Load(r.Root, dir)
		if err != nil {
			return err
		}
		for _, replace := range m.Replaces {
			if replace.New.Version != "" {
				continue
			}
			to := filepath.FromSlash(replace.New.Path)
			if filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.FromSlash(dir), to)) {
				return &OutsideError{fmt.Sprintf("%s:%d", filepath.Join(m.Dir, "go.mod"), replace.Line),
					fmt.Sprintf("%s is replaced by %s", replace.Old.Path, replace.New.Path)}
			}
		}
	}
	return nil
}

// downloaded lists the files of this machine's module cache that a module proxy for the tree's modules must have.
type downloaded struct {
	folder string   // GOMODCACHE/cache/download
	files  []string // relative to it
}

// downloads finds the files, and makes the Go command download missing ones.
func (r *Road) downloads(ctx context.Context, rep road.Report) (*downloaded, error) {
	g, err := r.Go(ctx, func(text string) { rep.Progress(0, 0, text) })
	if err != nil {
		return nil, err
	}
	d := &downloaded{folder: filepath.Join(g.ModCache, "cache", "download")}
	for _, dir := range r.Modules {
		m, err := module.Load(r.Root, dir)
		if err != nil {
			return nil, err
		}
		modules, goMods := m.Summed()
		var missing []string
		for _, m := range modules {
			base, err := m.ProxyPath()
			if err != nil {
				return nil, err
			}
			if d.lacks(base+".mod") || d.lacks(base+".zip") {
				missing = append(missing, m.String())
			}
			d.files = append(d.files, base+".mod", base+".zip", base+".info")
		}
		for _, m := range goMods {
			base, err := m.ProxyPath()
			if err != nil {
				return nil, err
			}
			d.files = append(d.files, base+".mod")
		}
		if len(missing) > 0 {
			err := step(rep, "downloading the modules of "+dir, func() (string, error) {
				return fmt.Sprintf("downloaded %d modules of %s", len(missing), dir), download(ctx, g, missing)
			})
			if err != nil {
				return nil, fmt.Errorf("modules of %s/go.sum: %w", dir, err)
			}
		}
	}
	// Builds do not need all go.mod files that go.sum has sums of.
	d.files = slices.DeleteFunc(d.files, d.lacks)
	slices.Sort(d.files)
	d.files = slices.Compact(d.files)
	return d, nil
}

func (d *downloaded) lacks(file string) bool {
	_, err := os.Stat(filepath.Join(d.folder, filepath.FromSlash(file)))
	return err != nil
}

// download makes the Go command fetch modules, PATH@VERSION, into its cache. It checks no go.sum: the Go command in the container
// does, before it uses a module.
func download(ctx context.Context, g *toolchain.Go, modules []string) error {
	nowhere, err := os.MkdirTemp("", "slipway-modules-") // in no module, so that no go.sum is written
	if err != nil {
		return err
	}
	defer os.RemoveAll(nowhere)
	cmd := g.Command(ctx, nowhere, "", "", append([]string{"mod", "download"}, modules...)...)
	cmd.Env = append(cmd.Env, "GOFLAGS=", "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod download: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
