package container

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/transfer"
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

// A generated go.mod is one that a module of the tree is compiled with instead of its own, see road.Spec. It is below _output, which
// containers do not get, so they get it in the volume of the modules, in a folder that is named by its content.
type generated struct {
	folder string            // in the volume
	files  map[string][]byte // of the folder, by name
	proxy  string            // the folder of a module proxy here that has the modules of the go.mod
}

// generatedFor reads the go.mod of a spec. It returns nil if the module is compiled with its own.
func (r *Road) generatedFor(spec road.Spec) (*generated, error) {
	if spec.ModFile == "" {
		return nil, nil
	}
	file := filepath.Join(r.Root, filepath.FromSlash(spec.ModFile))
	g := &generated{files: map[string][]byte{}, proxy: filepath.Join(filepath.Dir(file), "proxy")}
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			return nil, err
		}
		g.files[name] = data
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	g.folder = fmt.Sprintf("slipway/%x", h.Sum(nil)[:8])
	return g, nil
}

// modFile returns the path of the go.mod in containers.
func (g *generated) modFile() string { return path.Join(modulesFolder, g.folder, "go.mod") }

// send sends the go.mod and its modules.
func (g *generated) send(ctx context.Context, h *host) (sent transfer.Stats, err error) {
	tmp, err := os.MkdirTemp("", "slipway-modules-")
	if err != nil {
		return sent, err
	}
	defer os.RemoveAll(tmp)
	var names []string
	for name, data := range g.files {
		names = append(names, path.Join(g.folder, name))
		file := filepath.Join(tmp, filepath.FromSlash(g.folder), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return sent, err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return sent, err
		}
	}
	modules, err := filesBelow(g.proxy)
	if err != nil {
		return sent, err
	}
	for _, from := range []struct {
		dir   string
		names []string
	}{{g.proxy, modules}, {tmp, names}} { // the go.mod last: it is there only if its modules are
		stats, err := h.Add(ctx, "modules", from.dir, from.names)
		if err != nil {
			return sent, err
		}
		sent.Files += stats.Files
		sent.Sent += stats.Sent
	}
	return sent, nil
}

// filesBelow lists the files below a folder, relative to it and slash-separated.
func filesBelow(dir string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// downloaded lists the files of this machine's module cache that a module proxy for the tree's modules must have.
type downloaded struct {
	folder string   // GOMODCACHE/cache/download
	files  []string // relative to it
}

// downloads finds the files, and makes the Go command download missing ones.
func (r *Road) downloads(ctx context.Context, rep action.Report) (*downloaded, error) {
	g, err := r.Go(ctx, rep.Progress)
	if err != nil {
		return nil, err
	}
	d := &downloaded{folder: filepath.Join(g.ModCache, "cache", "download")}
	for _, dir := range r.Modules {
		m, err := module.Load(r.Root, dir)
		if err != nil {
			return nil, err
		}
		var missing []module.Pinned
		for _, m := range m.Pinned() {
			base, err := m.ProxyPath()
			if err != nil {
				return nil, err
			}
			d.files = append(d.files, base+".mod")
			if m.Sum == "" {
				continue // only its go.mod file counts, and builds do not need all of these
			}
			if d.lacks(base+".mod") || d.lacks(base+".zip") {
				missing = append(missing, m)
			}
			d.files = append(d.files, base+".zip", base+".info")
		}
		if len(missing) > 0 {
			err := step(rep, "downloading the modules of "+dir, func() (string, error) {
				return fmt.Sprintf("downloaded %d modules of %s", len(missing), dir), g.Fetch(ctx, missing)
			})
			if err != nil {
				return nil, fmt.Errorf("modules of %s/go.sum: %w", dir, err)
			}
		}
	}
	d.files = slices.DeleteFunc(d.files, d.lacks)
	slices.Sort(d.files)
	d.files = slices.Compact(d.files)
	return d, nil
}

func (d *downloaded) lacks(file string) bool {
	_, err := os.Stat(filepath.Join(d.folder, filepath.FromSlash(file)))
	return err != nil
}
