package patched

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

//go:embed *.go
var sources embed.FS

// Code identifies the code that makes patched modules.
var Code = recipe.Of("make/patched", sources)

// Files in the folder of patched modules.
const (
	ModFile  = "go.mod" // replaces the modules; go.sum is beside it
	SumFile  = "go.sum"
	ListFile = "patched.json" // a List
	Proxy    = "proxy"        // a module proxy that has the patched modules
)

// BazelConfig is the generated file of a tree that has the versions of the components' modules for Bazel.
const BazelConfig = "build/bazel/generated/config.bzl"

// Go finds the pinned Go.
type Go func(ctx context.Context, progress func(string)) (*toolchain.Go, error)

// A Spec describes the patched modules of a Go module of the tree. Paths are slash-separated and relative to the tree's root.
type Spec struct {
	Module  string   // folder of the Go module that requires them
	Project string   // whose patches they are, see patch.Series
	Patches []Source // in the order in which they apply
	Code    string   // identifies the Generator
	Output  string   // folder
}

// A Source is a file with a patch.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Dir returns the folder of the patched modules of a Go module of the tree.
func Dir(module string) string { return "_output/release-stage/patched/" + path.Base(module) }

// Load reads the patches of a tree, by the folder of the Go module that requires what they change.
func Load(root string, c *catalog.Catalog) (map[string]patch.Series, error) {
	all, err := patch.Load(root)
	if err != nil {
		return nil, err
	}
	found := map[string]patch.Series{}
	for _, s := range all {
		module := c.Module
		if s.Project != "" {
			module = path.Join("images", s.Project)
			if !slices.ContainsFunc(c.Binaries, func(b catalog.Binary) bool { return b.Module == module }) {
				return nil, fmt.Errorf("%s: release/release.yaml has no binary that is compiled in %s, so there is nothing to patch", s.Dir(), module)
			}
		}
		found[module] = s
	}
	return found, nil
}

// SpecOf describes the patched modules that the series of a Go module asks for.
func SpecOf(s patch.Series, module string) Spec {
	spec := Spec{Module: module, Project: s.Project, Output: Dir(module)}
	for _, p := range s.Patches {
		spec.Patches = append(spec.Patches, Source{p.Name, p.SHA256})
	}
	return spec
}

// Files returns the files that decide which code a module is, instead of its go.mod and go.sum.
func (s Spec) Files() []string { return []string{s.file(ModFile), s.file(SumFile)} }

func (s Spec) file(name string) string { return path.Join(s.Output, name) }

// A Generator updates generated code where patches change its sources.
type Generator interface {
	// Recipe identifies the generator's code and versions, for keys.
	Recipe() string
	// Affects reports whether changed files of Kubernetes' repository are such that code must be generated again.
	Affects(changes map[string]patch.Change) bool
	// Generate changes further files of a patched tree, in any of its modules.
	Generate(ctx context.Context, t Tree, report func(doing string)) error
}

// A Tree is the modules of a repository with their changes.
type Tree struct {
	*patch.Overlay
	Go  *toolchain.Go
	Tmp string // a folder for temporary files, which only this generator uses
}

// A List says which modules are patched.
type List struct {
	From    string   `json:"from"` // a digest of the go.mod and go.sum that require the modules
	Patches []Source `json:"patches"`
	Modules []Module `json:"modules"`
}

// A Module is a patched module.
type Module struct {
	Path     string         `json:"path"`     // as it is imported
	Version  string         `json:"version"`  // that the tree requires
	Original module.Version `json:"original"` // what was patched
	Patched  module.Version `json:"patched"`  // what the go.mod replaces the module by
	Sum      string         `json:"sum"`      // of the patched code
	ModSum   string         `json:"modSum"`   // of its go.mod file
}

// ReadList reads the list of a folder of patched modules.
func ReadList(dir string) (*List, error) {
	data, err := os.ReadFile(filepath.Join(dir, ListFile))
	if err != nil {
		return nil, err
	}
	list := &List{}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, ListFile), err)
	}
	return list, nil
}

// Place puts the patched modules into the module cache again, if they were removed there. The Go has the folder of patched modules
// among its proxies.
func (l *List) Place(ctx context.Context, g *toolchain.Go) error {
	var missing []module.Pinned
	for _, m := range l.Modules {
		dir, err := m.Patched.CachePath()
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(g.ModCache, filepath.FromSlash(dir))); err != nil {
			missing = append(missing, module.Pinned{Version: m.Patched, Sum: m.Sum, GoModSum: m.ModSum})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return g.Fetch(ctx, missing)
}

// missingIn returns the first of the patched modules whose version a file does not have. What cannot be read has all.
func (l *List) missingIn(config string) (path string, missing bool) {
	data, err := os.ReadFile(config)
	if err != nil {
		return "", false
	}
	for _, m := range l.Modules {
		if !bytes.Contains(data, []byte(strconv.Quote(m.Patched.Version))) {
			return m.Path, true
		}
	}
	return "", false
}

// Action returns the action that makes the folder of patched modules. Gen may be nil.
func Action(root string, find Go, gen Generator, s Spec, m *module.Module, inputs []string) *action.Action {
	if gen != nil {
		s.Code = gen.Recipe()
	}
	in := slices.Clone(inputs)
	for _, p := range s.Patches {
		in = append(in, p.Name)
	}
	return &action.Action{
		ID:      "patches " + s.Module,
		Phase:   "patches",
		Recipe:  Code.Recipe(s),
		Inputs:  in,
		Outputs: []string{s.file(ModFile), s.file(SumFile), s.file(ListFile), s.file(Proxy) + "/"},
		Run: func(ctx context.Context, t *action.Task) error {
			w, err := prepare(ctx, root, find, gen, s, m, t.Report.Progress)
			if err != nil {
				return err
			}
			for _, r := range w.reports {
				for _, line := range notes(r) {
					t.Report.Output(line)
				}
			}
			if err := w.generate(ctx, t.Dir()); err != nil {
				return err
			}
			list, err := w.write(ctx, t)
			if err != nil {
				return err
			}
			if m, stale := list.missingIn(filepath.Join(root, filepath.FromSlash(BazelConfig))); stale && s.Project == "" {
				t.Report.Output(fmt.Sprintf("%s does not have %s as the patches change it: the generated files of Bazel are out of date",
					BazelConfig, m))
			}
			return nil
		},
	}
}

// Make makes the patched modules of a Go module of the tree, unless they are up to date, and returns the list of them. It is empty if the
// tree has no patches of them. Program is the origin of the program that runs: see [action.Options].
func Make(ctx context.Context, root string, program action.Origin, find Go, gen Generator, c *catalog.Catalog, name string) (*List, error) {
	all, err := Load(root, c)
	if err != nil || len(all[name].Patches) == 0 {
		return &List{}, err
	}
	m, err := module.Load(root, name)
	if err != nil {
		return nil, err
	}
	inputs, err := m.Inputs()
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	spec := SpecOf(all[name], name)
	g := action.Graph{Root: root, State: "_output/.slipway", Actions: []*action.Action{Action(root, find, gen, spec, m, inputs)}}
	if err := g.Run(ctx, action.Options{Program: program}); err != nil {
		return nil, err
	}
	return ReadList(filepath.Join(root, filepath.FromSlash(spec.Output)))
}

// Made returns the list of the patched modules of a Go module, or an error if they are not those of the tree's patches and of the module's
// requirements.
func Made(root string, s Spec) (*List, error) {
	list, err := ReadList(filepath.Join(root, filepath.FromSlash(s.Output)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now, failed := module.Digest(filepath.Join(root, filepath.FromSlash(s.Module)))
	if failed != nil {
		return nil, failed
	}
	if err != nil || list.From != now || !slices.Equal(list.Patches, s.Patches) {
		return nil, fmt.Errorf("%s: %w", s.Output, ErrStale)
	}
	return list, nil
}

// ErrStale says that patched modules are not those of the tree's patches.
var ErrStale = errors.New("the patched modules are missing or out of date")

// notes returns what users should know of a patch that applies.
func notes(r patch.Report) []string {
	var lines []string
	if r.Verdict == patch.Upstream {
		lines = append(lines, fmt.Sprintf("%s changes nothing: upstream has it already", r.Patch.Name))
	}
	for _, s := range r.Skipped {
		lines = append(lines, fmt.Sprintf("%s: passed over %s: %s", r.Patch.Name, s.File, s.Why))
	}
	return lines
}

// Check returns an error that wraps a *patch.Conflict for each patch that does not apply, and a *patch.NoEffectError for each that
// changes nothing that is compiled. It reads the code of the modules, and fetches
// it if the module cache lacks it.
func Check(ctx context.Context, root string, find Go, s Spec, m *module.Module, progress func(string)) error {
	_, err := prepare(ctx, root, find, nil, s, m, progress)
	return err
}

// prepare applies the patches of a spec in memory.
func prepare(ctx context.Context, root string, find Go, gen Generator, s Spec, m *module.Module, progress func(string)) (*work, error) {
	g, err := find(ctx, progress)
	if err != nil {
		return nil, err
	}
	w := &work{root: root, g: g, gen: gen, spec: s, module: m, progress: progress, bases: map[string]*base{}}
	if w.repo, err = patch.LinkingRepository(s.Project, m); err != nil {
		return nil, err
	}
	w.overlay = patch.NewOverlay(w.repo, w.modules(ctx))
	for _, p := range s.Patches {
		parsed, err := patch.ParseFile(root, p.Name)
		if err != nil {
			return nil, err
		}
		w.patches = append(w.patches, parsed)
	}
	if w.reports, err = w.overlay.Check(w.patches); err != nil {
		return nil, err
	}
	var unusable []error
	for _, r := range w.reports {
		unusable = append(unusable, r.Err())
	}
	return w, errors.Join(unusable...)
}

// version names a patched module: by the patches that touch it, and by what they change.
func version(original, patches, content string) string {
	base, build, incompatible := strings.Cut(original, "+")
	v := fmt.Sprintf("%s-patched.p%.12s.c%.12s", base, patches, content)
	if incompatible {
		v += "+" + build
	}
	return v
}
