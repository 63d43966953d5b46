package inputs

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	inventory "slipway.build/pkg/tree/module"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("make/inputs", sources)

const phase = "inputs"

// A Go finds the pinned Go.
type Go func(ctx context.Context, progress func(string)) (*toolchain.Go, error)

// A ModulesSpec describes a folder of modules.
type ModulesSpec struct {
	Modules []inventory.Pinned
	Output  string // a folder, relative to the tree's root
}

// ModulesAction returns the action that makes the folder.
func ModulesAction(find Go, s ModulesSpec) *action.Action {
	out := s.Output + "/"
	return &action.Action{
		ID:      "inputs modules",
		Phase:   phase,
		Cost:    action.Cost{CPU: runtime.GOMAXPROCS(0)},
		Recipe:  code.Recipe(s),
		Outputs: []string{out},
		Run: func(ctx context.Context, t *action.Task) error {
			g, err := find(ctx, t.Report.Progress)
			if err != nil {
				return err
			}
			t.Report.SetWorker(fmt.Sprintf("%d modules", len(s.Modules)))
			return s.write(ctx, g, t.Path(out), t.Report)
		},
	}
}

// write fills dir.
func (s ModulesSpec) write(ctx context.Context, g *toolchain.Go, dir string, report action.Report) error {
	cache := filepath.Join(g.ModCache, "cache", "download")
	missing, err := s.missing(cache)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		report.Progress(fmt.Sprintf("fetching %d modules", len(missing)))
		if err := g.Fetch(ctx, missing); err != nil {
			return err
		}
	}
	if err := s.writeLists(dir); err != nil {
		return err
	}
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, m := range largestFirst(cache, s.Modules) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := writeModule(ctx, cache, dir, m); err != nil {
				return err
			}
			report.Count("", done.Add(1), int64(len(s.Modules)), m.String())
			return nil
		})
	}
	return group.Wait()
}

// missing returns the modules that the module cache lacks files of.
func (s ModulesSpec) missing(cache string) ([]inventory.Pinned, error) {
	var missing []inventory.Pinned
	for _, m := range s.Modules {
		at, err := m.ProxyPath()
		if err != nil {
			return nil, err
		}
		for _, suffix := range suffixes(m) {
			_, err := os.Stat(filepath.Join(cache, filepath.FromSlash(at)+suffix))
			if errors.Is(err, fs.ErrNotExist) {
				missing = append(missing, m)
				break
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return missing, nil
}

// suffixes returns those of a module's files that come from the module cache.
func suffixes(m inventory.Pinned) []string {
	if m.Sum == "" {
		return []string{".mod"}
	}
	return []string{".mod", ".zip"}
}

// largestFirst sorts modules by the sizes of their zip files, so that no large one remains when the rest is done.
func largestFirst(cache string, modules []inventory.Pinned) []inventory.Pinned {
	sizes := map[inventory.Version]int64{}
	for _, m := range modules {
		at, _ := m.ProxyPath() // missing has called it
		if info, err := os.Stat(filepath.Join(cache, filepath.FromSlash(at)+".zip")); err == nil && m.Sum != "" {
			sizes[m.Version] = info.Size()
		}
	}
	sorted := slices.Clone(modules)
	slices.SortStableFunc(sorted, func(a, b inventory.Pinned) int { return int(sizes[b.Version] - sizes[a.Version]) })
	return sorted
}

// writeLists writes the file of each module that lists its versions, without pseudo-versions.
func (s ModulesSpec) writeLists(dir string) error {
	lists := map[string][]string{}
	for _, m := range s.Modules {
		at, err := m.ProxyPath()
		if err != nil {
			return err
		}
		folder := path.Dir(at)
		lists[folder] = append(lists[folder], m.Version.Version)
	}
	for folder, versions := range lists {
		versions = slices.DeleteFunc(versions, module.IsPseudoVersion)
		semver.Sort(versions)
		var text string
		if len(versions) > 0 {
			text = strings.Join(versions, "\n") + "\n"
		}
		to := filepath.Join(dir, filepath.FromSlash(folder), "list")
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeModule writes the files of a module, and checks them by their sums. The folder of its lists exists.
func writeModule(ctx context.Context, cache, dir string, m inventory.Pinned) error {
	at, err := m.ProxyPath()
	if err != nil {
		return err
	}
	from, to := filepath.Join(cache, filepath.FromSlash(at)), filepath.Join(dir, filepath.FromSlash(at))
	// A proxy's own file may have more, which depends on the proxy.
	info, err := json.Marshal(struct{ Version string }{m.Version.Version})
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".info", info, 0o644); err != nil {
		return err
	}
	goMod, err := os.ReadFile(from + ".mod")
	if err != nil {
		return err
	}
	sum, err := inventory.SumOfGoMod(goMod)
	if err != nil {
		return err
	}
	if m.GoModSum != "" && sum != m.GoModSum {
		return &ChangedError{Module: m.String(), File: from + ".mod", Sum: sum, Want: m.GoModSum}
	}
	if err := os.WriteFile(to+".mod", goMod, 0o644); err != nil || m.Sum == "" {
		return err
	}
	sum, err = repack(ctx, from+".zip", to+".zip")
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	if sum != m.Sum {
		return &ChangedError{Module: m.String(), File: from + ".zip", Sum: sum, Want: m.Sum}
	}
	return nil
}

// A ChangedError says that a file in the module cache is not what go.sum or release.yaml has the sum of.
type ChangedError struct{ Module, File, Sum, Want string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: %s has the sum %s, want %s", e.Module, e.File, e.Sum, e.Want)
}
