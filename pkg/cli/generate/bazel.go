package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bazel-contrib/bazel-gazelle/v2/label"

	makebazel "slipway.build/pkg/make/bazel"
	"slipway.build/pkg/make/codegen"
	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/stamp"
)

// Folders of the files that Bazel reads, relative to the root.
const (
	bazelFolder     = "build/bazel/generated"
	platformsFolder = "build/bazel/platforms"
)

// Go modules that also hold Starlark code.
const (
	rulesGo = "github.com/bazelbuild/rules_go"
	gazelle = "github.com/bazelbuild/bazel-gazelle"
)

// A goModule is a module that the components link, as Bazel gets it.
type goModule struct {
	path     string // import path
	replace  string // the module that replaces it, if that has another path
	folder   string // the folder that replaces it, relative to the root or absolute; then it has no version and no sum
	replaced string // what replaces it, as the build information of binaries has it: PATH@VERSION, or a folder as go.mod writes it
	required string // version that is replaced
	version  string
	sum      string
	goLine   string // of its go.mod: "1.22.0"; none in some old ones
	direct   bool   // packages in cmd/ import it
	visitors []string
}

// replacedBy records what replaces the module.
func (m *goModule) replacedBy(v module.Version) {
	m.replaced = v.String()
	if v.Path != m.path {
		m.replace = v.Path
	}
}

// repository returns the name that gazelle expects for a module.
func (m goModule) repository() string { return label.ImportPathToBazelRepoName(m.path) }

// A patchedBy returns the modules that patches change in the tree at root.
type patchedBy func(ctx context.Context, root string, g *toolchain.Go, c *catalog.Catalog) (*patched.List, error)

// makePatched makes the modules that patches change.
func makePatched(ctx context.Context, root string, g *toolchain.Go, c *catalog.Catalog) (*patched.List, error) {
	find := func(context.Context, func(string)) (*toolchain.Go, error) { return g, nil }
	_, program := project.Targets(root)
	gen := codegen.ForPatches{Root: root, Components: c.Module, GoVersion: c.Go.Version}
	return patched.Make(ctx, root, program, find, gen, c, c.Module)
}

// madePatched returns the modules that patches change, which are made already. It waits for no other run in the tree.
func madePatched(_ context.Context, root string, _ *toolchain.Go, c *catalog.Catalog) (*patched.List, error) {
	all, err := patched.Load(root, c)
	if err != nil || len(all[c.Module].Patches) == 0 {
		return &patched.List{}, err
	}
	return patched.Made(root, patched.SpecOf(all[c.Module], c.Module))
}

// A bazelTree is what the files are made of that Bazel reads.
type bazelTree struct {
	root       string
	workspace  string // the folder that Bazel runs in
	catalog    *catalog.Catalog
	tool       *toolchain.Go
	components *module.Module
	patched    *patched.List
}

func openForBazel(ctx context.Context, root string, find patchedBy) (t bazelTree, err error) {
	t.root, t.workspace = root, makebazel.Workspace(root)
	if t.catalog, err = catalog.Load(root); err != nil {
		return t, err
	}
	if t.tool, err = toolchain.Find(ctx, toolchain.Pin{Version: t.catalog.Go.Version, Sums: t.catalog.Go.Sums}, nil); err != nil {
		return t, err
	}
	if err := gitsource.Place(ctx, t.tool, root, t.catalog, nil); err != nil {
		return t, err
	}
	if t.components, err = module.Load(root, t.catalog.Module); err != nil {
		return t, err
	}
	t.patched, err = find(ctx, root, t.tool, t.catalog)
	return t, err
}

// bazel makes all files that Bazel reads.
func bazel(ctx context.Context, root string, made map[string][]byte) error {
	t, err := openForBazel(ctx, root, makePatched)
	if err != nil {
		return err
	}
	return errors.Join(t.build(ctx, made), t.tests(ctx, made))
}

// build makes the files that builds read.
func (t bazelTree) build(ctx context.Context, made map[string][]byte) error {
	modules, err := goModules(ctx, t.tool, t.components)
	if err != nil {
		return err
	}
	takePatched(modules, t.patched)
	folders, err := replacedByFolders(t.root, t.catalog)
	if err != nil {
		return err
	}
	godebug, err := godebug(ctx, t.tool, t.components.Dir, t.catalog)
	if err != nil {
		return err
	}
	tools, err := module.Load(t.workspace, ".")
	if err != nil {
		return err
	}
	s := starlark{
		catalog: t.catalog, components: t.components,
		own:     goModule{path: t.catalog.ModulePath, goLine: t.components.Go},
		modules: modules, folders: folders, stamp: stamp.XDefs(), godebug: godebug,
		rulesGo: tools.Version(rulesGo), gazelle: tools.Version(gazelle),
	}
	for name, write := range map[string]func() string{
		bazelFolder + "/BUILD.bazel":            s.build,
		bazelFolder + "/bazelrc":                s.bazelrc,
		bazelFolder + "/buildid.patch":          buildIDs,
		bazelFolder + "/config.bzl":             s.config,
		bazelFolder + "/release.bzl":            s.releases,
		bazelFolder + "/repositories.WORKSPACE": func() string { return repositories(modules) },
		bazelFolder + "/versions.MODULE.bazel":  s.versions,
		platformsFolder + "/BUILD.bazel":        s.platforms,
		t.catalog.Module + "/BUILD.bazel":       s.aliases,
	} {
		if made[name], err = formatted(name, write()); err != nil {
			return err
		}
	}
	return nil
}

// goModules returns the modules that packages of a module are compiled from: those in its go.mod (which names all of them) with a
// sum of their content in go.sum. Of the others, only the requirements were read.
func goModules(ctx context.Context, g *toolchain.Go, of *module.Module) ([]goModule, error) {
	var modules []goModule
	var paths []string
	for _, r := range of.Requires {
		code := r.Code()
		m := goModule{path: r.Path, version: code.Version, sum: r.Sum, folder: r.Folder(), direct: r.Direct, required: r.Version}
		if m.folder != "" {
			m.replaced = m.folder
			if !path.IsAbs(m.folder) {
				m.folder = path.Join(of.Name, m.folder) // may begin with ../
			}
		} else if r.Replace != (module.Version{}) {
			m.replacedBy(code)
		}
		if m.sum != "" || m.folder != "" {
			modules = append(modules, m)
			paths = append(paths, m.path)
		}
	}
	lines, err := goLines(ctx, g, of.Dir, paths)
	if err != nil {
		return nil, err
	}
	for i, m := range modules {
		modules[i].goLine = lines[m.path]
		modules[i].visitors = visitors(m, modules)
	}
	sortModules(modules)
	return modules, nil
}

// visitors returns the repositories of modules that may import internal packages of a module: a package can be imported below the folder
// that holds its internal folder, and other modules may lie there, too.
func visitors(of goModule, modules []goModule) []string {
	var found []string
	for _, other := range modules {
		if strings.HasPrefix(other.path, of.path+"/") {
			found = append(found, other.repository())
		}
	}
	slices.Sort(found)
	return found
}

func sortModules(modules []goModule) {
	slices.SortFunc(modules, func(a, b goModule) int { return cmp.Compare(a.repository(), b.repository()) })
}

// takePatched makes Bazel get patched modules instead of those that patches change.
func takePatched(modules []goModule, list *patched.List) {
	for _, p := range list.Modules {
		i := slices.IndexFunc(modules, func(m goModule) bool { return m.path == p.Path })
		if i < 0 {
			continue // a module that nothing is compiled from
		}
		modules[i].version, modules[i].sum, modules[i].replace = p.Patched.Version, p.Sum, ""
		modules[i].replacedBy(p.Patched)
	}
}

// replacedByFolders returns the folders of the tree, relative to its root, that replace modules of any program.
func replacedByFolders(root string, c *catalog.Catalog) ([]string, error) {
	var folders, seen []string
	for _, b := range c.Binaries {
		if slices.Contains(seen, b.Module) {
			continue
		}
		seen = append(seen, b.Module)
		m, err := module.Load(root, b.Module)
		if err != nil {
			return nil, err
		}
		for _, folder := range m.Folders() {
			if in := path.Join(m.Name, folder); !path.IsAbs(folder) && filepath.IsLocal(in) {
				folders = append(folders, in)
			}
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
}

// goLines returns the versions of Go in the go.mod files of modules, by path.
func goLines(ctx context.Context, g *toolchain.Go, dir string, paths []string) (map[string]string, error) {
	out, err := run(ctx, g, dir, append([]string{"list", "-m", "-mod=readonly", "-json=Path,GoVersion,Replace"}, paths...)...)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var m struct {
			Path, GoVersion string
			Replace         *struct{ GoVersion string }
		}
		if err := d.Decode(&m); err != nil {
			return nil, fmt.Errorf("go list -m: %w", err)
		}
		if m.Replace != nil {
			m.GoVersion = m.Replace.GoVersion
		}
		found[m.Path] = m.GoVersion
	}
	return found, nil
}

// languageOf returns the language version of a go line: "1.22" for "1.22.3". Without a go line it is Go 1.16, as for the go command.
func languageOf(version string) string {
	return strings.TrimPrefix(goversion.Lang("go"+cmp.Or(version, "1.16")), "go")
}

// godebug returns the default GODEBUG that cmd/go.mod gives the components. It must be the same for all: a component with settings
// of its own (//go:debug) is an error.
func godebug(ctx context.Context, g *toolchain.Go, dir string, c *catalog.Catalog) (string, error) {
	args := []string{"list", "-mod=readonly", "-find", "-f={{.ImportPath}} {{.DefaultGODEBUG}}"}
	for _, b := range c.Binaries {
		if !b.IsTest() && c.IsComponent(b) {
			args = append(args, b.ImportPath())
		}
	}
	out, err := run(ctx, g, dir, args...)
	if err != nil {
		return "", err
	}
	settings := map[string][]string{}
	for line := range strings.Lines(out) {
		pkg, setting, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		settings[setting] = append(settings[setting], pkg)
	}
	if len(settings) != 1 {
		return "", fmt.Errorf("the components differ in their default GODEBUG, but Bazel has only one: %v", settings)
	}
	return slices.Collect(maps.Keys(settings))[0], nil
}

// run returns what the pinned go command prints.
func run(ctx context.Context, g *toolchain.Go, dir string, args ...string) (string, error) {
	var stderr strings.Builder
	c := g.Command(ctx, dir, "", "", args...)
	c.Env = append(c.Env, "GOFLAGS=")
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("go %s: %w", args[0], err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return string(out), nil
}
