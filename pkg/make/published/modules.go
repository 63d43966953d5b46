package published

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/published", sources)

// A Go finds the pinned Go.
type Go func(ctx context.Context, progress func(string)) (*toolchain.Go, error)

// A Spec describes a folder of modules. Paths are slash-separated and relative to the tree's root.
type Spec struct {
	Requires string // a folder with the go.mod and go.sum that say which code the components are compiled from
	Release  string // see [Release]
	Output   string // folder
}

// Action returns the action that makes the folder. It lacks the lists of versions, which [Add] writes. A file in it has the modules' sums,
// as a go.sum has them, and is called after the version of k8s.io/kubernetes.
func Action(root string, find Go, s Spec) *action.Action {
	out := s.Output + "/"
	return &action.Action{
		ID:      "modules",
		Phase:   "modules",
		Cost:    action.Cost{CPU: runtime.GOMAXPROCS(0)},
		Recipe:  code.Recipe(s),
		Inputs:  []string{s.Requires + "/go.mod", s.Requires + "/go.sum"},
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			w := work{spec: s, dir: t.Path(out)}
			var err error
			if w.requires, err = module.Load(root, s.Requires); err != nil {
				return err
			}
			g, err := find(ctx, t.Report.Progress)
			if err != nil {
				return err
			}
			return w.write(ctx, g, t.Report)
		},
	}
}

// A work is one making of a folder.
type work struct {
	spec     Spec
	dir      string
	requires *module.Module

	modules  []published
	versions map[string]string // of the published modules, by path
	upstream string            // the version of upstream's staging modules
}

// A published module has the code of another version.
type published struct {
	module.Pinned               // the sums are filled in when it is written
	code          module.Pinned // its sum is the one in go.sum
}

func (w *work) write(ctx context.Context, g *toolchain.Go, report action.Report) error {
	if err := w.find(); err != nil {
		return err
	}
	var codes []module.Pinned
	for _, p := range w.modules {
		codes = append(codes, p.code)
	}
	report.Progress(fmt.Sprintf("looking for %d modules", len(codes)))
	if err := g.Fetch(ctx, codes); err != nil {
		return err
	}
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range w.modules {
		p := &w.modules[i]
		group.Go(func() error {
			if err := w.writeModule(ctx, g.ModCache, p); err != nil {
				return fmt.Errorf("module %s: %w", p.Path, err)
			}
			report.Count("", done.Add(1), int64(len(w.modules)), p.Path)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, p := range w.modules {
		fmt.Fprintf(&sums, "%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", p.Path, p.Version.Version, p.Sum, p.GoModSum)
	}
	return os.WriteFile(filepath.Join(w.dir, w.versions[patch.Kubernetes]+".sum"), sums.Bytes(), 0o644)
}

// find fills in the modules and their versions.
func (w *work) find() error {
	repository, err := patch.KubernetesRepository(w.requires)
	if err != nil {
		return err
	}
	w.versions = map[string]string{}
	for _, place := range repository.Places {
		r, _ := w.requires.Require(place.Module) // the places are among what it requires
		if folder := r.Folder(); folder != "" {
			return fmt.Errorf("%s/go.mod replaces %s by the folder %s, which has no version to publish", w.requires.Name, r.Path, folder)
		}
		if r.Sum == "" {
			return fmt.Errorf("%s/go.sum has no sum of %s", w.requires.Name, r.Code())
		}
		p := published{code: module.Pinned{Version: r.Code(), Sum: r.Sum}}
		p.Version = module.Version{Path: place.Module, Version: next(place.Version, w.spec.Release)}
		w.modules = append(w.modules, p)
		w.versions[p.Path] = p.Version.Version
		if place.Module == patch.Kubernetes {
			w.upstream = module.Staging(place.Version)
		}
	}
	slices.SortFunc(w.modules, func(a, b published) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// writeModule writes the files of a module.
func (w *work) writeModule(ctx context.Context, modCache string, p *published) error {
	from, err := p.code.ProxyPath()
	if err != nil {
		return err
	}
	to, err := p.ProxyPath()
	if err != nil {
		return err
	}
	to = filepath.Join(w.dir, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	zipped, err := openZip(filepath.Join(modCache, "cache", "download", filepath.FromSlash(from)+".zip"), p.code)
	if err != nil {
		return err
	}
	defer zipped.Close()
	goMod, err := fs.ReadFile(zipped, zipped.prefix+"go.mod")
	if err != nil {
		return err
	}
	if goMod, err = module.WithVersions(goMod, w.versions, w.upstream); err != nil {
		return err
	}
	if p.GoModSum, err = module.SumOfGoMod(goMod); err != nil {
		return err
	}
	if p.Sum, err = zipped.writeAs(ctx, to+".zip", p.Version, goMod); err != nil {
		return err
	}
	// Without a time, a version is the same at every commit with the same code.
	info, err := json.Marshal(struct{ Version string }{p.Version.Version})
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".info", info, 0o644); err != nil {
		return err
	}
	return os.WriteFile(to+".mod", goMod, 0o644)
}
