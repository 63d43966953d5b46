package container

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"slipway.build/pkg/road"
)

// An OutsideError says that containers cannot have what a path leads to.
type OutsideError struct {
	Where string // file:line
	What  string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%s: %s, which is outside of the tree: containers get the tree only; move it into the tree, or use ROAD=local", e.Where, e.What)
}

// checkModules reports, as an *OutsideError, modules that are replaced by a folder outside of the tree.
func (r *Road) checkModules() error {
	for _, dir := range r.Modules {
		mod, err := r.readModule(dir)
		if err != nil {
			return err
		}
		for _, replace := range mod.Replace {
			if replace.New.Version != "" {
				continue
			}
			to := filepath.FromSlash(replace.New.Path)
			if filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(filepath.FromSlash(dir), to)) {
				return &OutsideError{fmt.Sprintf("%s:%d", mod.Syntax.Name, replace.Syntax.Start.Line),
					fmt.Sprintf("%s is replaced by %s", replace.Old.Path, replace.New.Path)}
			}
		}
	}
	return nil
}

func (r *Road) readModule(dir string) (*modfile.File, error) {
	name := filepath.Join(r.Root, filepath.FromSlash(dir), "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, data, nil)
}

// downloaded are the files of this machine's module cache that a module proxy for the tree's modules has to have.
type downloaded struct {
	folder string   // GOMODCACHE/cache/download
	files  []string // relative to it
}

// downloads finds the files, and has the Go command download what is missing.
func (r *Road) downloads(ctx context.Context, rep road.Report) (*downloaded, error) {
	g, err := r.Go(ctx, func(text string) { rep.Progress(0, 0, text) })
	if err != nil {
		return nil, err
	}
	d := &downloaded{folder: filepath.Join(g.ModCache, "cache", "download")}
	for _, dir := range r.Modules {
		required, summed, err := r.moduleFiles(dir)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(required, d.lacks) {
			err := step(rep, "downloading the modules of "+dir, func() (string, error) {
				cmd := g.Command(ctx, filepath.Join(r.Root, filepath.FromSlash(dir)), "", "", "mod", "download")
				cmd.Env = append(cmd.Env, "GOFLAGS=-mod=readonly")
				if out, err := cmd.CombinedOutput(); err != nil {
					return "", fmt.Errorf("go mod download in %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
				}
				return "downloaded the modules of " + dir, nil
			})
			if err != nil {
				return nil, err
			}
		}
		for _, file := range append(required, summed...) {
			if !d.lacks(file) {
				d.files = append(d.files, file)
			}
		}
	}
	slices.Sort(d.files)
	d.files = slices.Compact(d.files)
	return d, nil
}

// lacks says that a file is not there. Not all that go.sum has sums of is needed for builds.
func (d *downloaded) lacks(file string) bool {
	_, err := os.Stat(filepath.Join(d.folder, filepath.FromSlash(file)))
	return err != nil
}

// moduleFiles names files of a module proxy: those of the modules that a module requires, and the go.mod files of all that it
// has sums of, from which the Go command puts the module graph together.
func (r *Road) moduleFiles(dir string) (required, summed []string, err error) {
	mod, err := r.readModule(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, req := range mod.Require {
		m := req.Mod
		for _, replace := range mod.Replace {
			if replace.Old.Path == m.Path && (replace.Old.Version == "" || replace.Old.Version == m.Version) {
				m = replace.New
			}
		}
		if m.Version == "" {
			continue // a folder of the tree
		}
		base, err := proxyPath(m)
		if err != nil {
			return nil, nil, err
		}
		required = append(required, base+".mod", base+".zip")
		summed = append(summed, base+".info")
	}
	sums, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(dir), "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	for line := range strings.Lines(string(sums)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		version, ok := strings.CutSuffix(fields[1], "/go.mod")
		if !ok {
			continue
		}
		base, err := proxyPath(module.Version{Path: fields[0], Version: version})
		if err != nil {
			return nil, nil, err
		}
		summed = append(summed, base+".mod")
	}
	return required, summed, nil
}

// proxyPath is where a module proxy has a version's files, but for their suffix: see `go help goproxy`.
func proxyPath(m module.Version) (string, error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", err
	}
	return path + "/@v/" + version, nil
}
