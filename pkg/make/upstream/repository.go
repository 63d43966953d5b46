package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/module"
)

// Kubernetes is the project that the components are compiled from.
const Kubernetes = "k8s.io/kubernetes"

// A Repository says which modules another project's repository consists of.
type Repository struct {
	Project string   // "k8s.io/kubernetes", or the name of an image's folder: "etcd"
	Path    string   // what the repository's modules begin with: "k8s.io/kubernetes", "go.etcd.io/etcd"
	Version string   // of its main module
	Modules []Module // by Dir
	Missing []Missing
}

// A Module is a module in a repository.
type Module struct {
	module.Version
	Dir    string // where the repository has it, slash-separated: ".", "staging/src/k8s.io/api"
	Source string // its folder in the module cache
	Sum    string // "h1:…"
}

// A Missing module belongs to the repository and cannot be fetched.
type Missing struct {
	module.Version
	Dir string
	Err error
}

func (m Missing) String() string { return fmt.Sprintf("%s is left out: %v", m.Version, m.Err) }

// Go runs the go command, as *toolchain.Go does.
type Go interface {
	Command(ctx context.Context, dir, goos, goarch string, args ...string) *exec.Cmd
}

// Open finds the modules of a project that the tree takes, and fetches those that are not in the module cache.
//
// The folder components (such as "cmd") is the module that requires k8s.io/kubernetes. Another project is named after its image's
// folder below images/, and consists of the modules that its go.mod requires of one repository: the only one that is required
// directly, or the one with the folder's name.
func Open(ctx context.Context, g Go, root, components, project string) (*Repository, error) {
	if err := CheckProject(root, project); err != nil {
		return nil, err
	}
	folder := components
	if project != Kubernetes {
		folder = "images/" + project
	}
	mod, err := module.Load(root, folder)
	if err != nil {
		return nil, err
	}
	r := &Repository{Project: project}
	if project == Kubernetes {
		err = r.findKubernetes(ctx, g, mod)
	} else {
		err = r.findProject(ctx, g, mod)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.Modules, func(a, b Module) int { return cmp.Compare(a.Dir, b.Dir) })
	return r, nil
}

// OpenLinked finds a module that the go.mod in a folder of the tree requires, as a repository of its own.
func OpenLinked(ctx context.Context, g Go, root, folder, modulePath string) (*Repository, error) {
	mod, err := module.Load(root, folder)
	if err != nil {
		return nil, err
	}
	required, ok := mod.Require(modulePath)
	if !ok {
		return nil, badrequest.Mark(fmt.Errorf("%s/go.mod requires no module %s", folder, modulePath))
	}
	if err := noFolder(mod, required.Dependency); err != nil {
		return nil, err
	}
	found, err := fetch(ctx, g, mod.Dir, []Module{{Version: required.Code(), Dir: "."}})
	if err != nil {
		return nil, err
	}
	r := &Repository{Project: modulePath, Path: modulePath, Version: required.Code().Version, Modules: []Module{found[0].Module}}
	return r, found[0].err
}

// Projects lists the projects that a tree may patch: Kubernetes, and the folders below images/ with a go.mod.
func Projects(root string) ([]string, error) {
	files, err := fs.Glob(os.DirFS(root), "images/*/go.mod")
	if err != nil {
		return nil, err
	}
	list := []string{Kubernetes}
	for _, file := range files {
		list = append(list, path.Base(path.Dir(file)))
	}
	return list, nil
}

// CheckProject returns an error if a tree has no such project.
func CheckProject(root, project string) error {
	known, err := Projects(root)
	if err != nil || slices.Contains(known, project) {
		return err
	}
	return badrequest.Mark(fmt.Errorf("unknown project %q%s (the tree has %s)", project,
		suggest.DidYouMean(suggest.Near(project, known)), strings.Join(known, ", ")))
}

// findKubernetes finds k8s.io/kubernetes and the staging modules that its own go.mod replaces by folders.
func (r *Repository) findKubernetes(ctx context.Context, g Go, mod *module.Module) error {
	required, ok := mod.Require(Kubernetes)
	if !ok {
		return fmt.Errorf("%s does not require %s", filepath.Join(mod.Dir, "go.mod"), Kubernetes)
	}
	main := Module{Version: required.Code(), Dir: "."}
	if err := noFolder(mod, required.Dependency); err != nil {
		return err
	}
	fetched, err := fetch(ctx, g, mod.Dir, []Module{main})
	if err != nil {
		return err
	}
	if err := fetched[0].err; err != nil {
		return err
	}
	r.Path, r.Version, r.Modules = Kubernetes, required.Version, []Module{fetched[0].Module}

	own, err := module.Load(fetched[0].Source, ".")
	if err != nil {
		return err
	}
	var staging []Module
	var needed []bool // whether something may be compiled from it
	for _, replaced := range own.Replaces {
		dir, ok := strings.CutPrefix(replaced.New.Path, "./")
		if !ok || replaced.New.Version != "" {
			continue
		}
		d := selected(mod, replaced.Old.Path, r.Version)
		if err := noFolder(mod, d); err != nil {
			return err
		}
		_, compiled := mod.Require(d.Path)
		needed = append(needed, compiled)
		staging = append(staging, Module{Version: d.Code(), Dir: path.Clean(dir)})
	}
	if fetched, err = fetch(ctx, g, mod.Dir, staging); err != nil {
		return err
	}
	for i, f := range fetched {
		switch {
		case f.err == nil:
			r.Modules = append(r.Modules, f.Module)
		case needed[i]:
			return f.err
		default:
			r.Missing = append(r.Missing, Missing{f.Version, f.Dir, f.err})
		}
	}
	return nil
}

// selected returns a staging module as the tree selects it. One that nothing is compiled from may be required nowhere: then a
// replacement names its version, or it is the one that was released with Kubernetes.
func selected(mod *module.Module, staging, kubernetes string) module.Dependency {
	if r, ok := mod.Require(staging); ok {
		return r.Dependency
	}
	d := module.Dependency{Path: staging, Version: module.Staging(kubernetes)}
	for _, r := range mod.Replaces {
		if r.Old.Path == staging && (r.Old.Version == "" || r.Old.Version == d.Version) {
			d.Replace = r.New
		}
	}
	return d
}

// findProject finds the modules of one repository that an image's go.mod requires.
func (r *Repository) findProject(ctx context.Context, g Go, mod *module.Module) error {
	var direct []string
	for _, required := range mod.Requires {
		if at := module.Repository(required.Path); required.Direct && !slices.Contains(direct, at) {
			direct = append(direct, at)
		}
	}
	named := slices.IndexFunc(direct, func(at string) bool { return path.Base(at) == r.Project })
	switch {
	case len(direct) == 0:
		return badrequest.Mark(fmt.Errorf("images/%s is code of this tree, not of another project: edit it there", r.Project))
	case len(direct) == 1:
		r.Path = direct[0]
	case named >= 0:
		r.Path = direct[named]
	default:
		return fmt.Errorf("%s requires modules of several repositories, and none is called %s: %s",
			filepath.Join(mod.Dir, "go.mod"), r.Project, strings.Join(direct, ", "))
	}
	var modules []Module
	for _, required := range mod.Requires {
		if module.Repository(required.Path) != r.Path {
			continue
		}
		if err := noFolder(mod, required.Dependency); err != nil {
			return err
		}
		modules = append(modules, Module{Version: required.Code(), Dir: folder(required.Path, r.Path)})
		if required.Direct {
			r.Version = required.Version
		}
	}
	fetched, err := fetch(ctx, g, mod.Dir, modules)
	if err != nil {
		return err
	}
	for _, f := range fetched {
		if f.err != nil {
			return f.err
		}
		r.Modules = append(r.Modules, f.Module)
	}
	return r.moveToMajor()
}

// moveToMajor corrects the folders of modules that have a folder for their major version, as go.etcd.io/etcd/client/v3 has, unlike
// the other modules of etcd. Their paths do not say so, but the replacements by which modules of one repository find each other do.
func (r *Repository) moveToMajor() error {
	var moves []func()
	for _, m := range r.Modules {
		own, err := module.Load(m.Source, ".")
		if err != nil {
			return err
		}
		for i, other := range r.Modules {
			major := path.Join(other.Dir, path.Base(other.Path))
			found := func(replaced module.Replacement) bool {
				return replaced.Old.Path == other.Path && replaced.New.Version == "" && path.Join(m.Dir, replaced.New.Path) == major
			}
			if slices.ContainsFunc(own.Replaces, found) {
				moves = append(moves, func() { r.Modules[i].Dir = major })
			}
		}
	}
	for _, move := range moves {
		move()
	}
	return nil
}

// folder returns where a repository has a module: below the folder that its path names, without a major version.
func folder(modulePath, repository string) string {
	rest := strings.Trim(strings.TrimPrefix(modulePath, repository), "/")
	if last := path.Base(rest); len(last) > 1 && last[0] == 'v' && semver.Major(last) == last {
		rest = strings.Trim(strings.TrimSuffix(rest, last), "/")
	}
	return path.Clean(rest)
}

// noFolder returns an error if a folder replaces a module: its files are the user's own, and have no version.
func noFolder(mod *module.Module, d module.Dependency) error {
	if dir := d.Folder(); dir != "" {
		return fmt.Errorf("%s replaces %s by the folder %s: what is in it is not upstream's, and is edited there",
			filepath.Join(mod.Dir, "go.mod"), d.Path, dir)
	}
	return nil
}

// Key returns a digest of what a copy consists of.
func (r *Repository) Key() string {
	h := sha256.New()
	fmt.Fprintln(h, code)
	for _, m := range r.Modules {
		fmt.Fprintln(h, m.Dir, m.Path, m.Version.Version, m.Sum)
	}
	for _, m := range r.Missing {
		fmt.Fprintln(h, m.Dir, "missing")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Find returns the module that a file of the repository belongs to, and the file's path in it. A file at the top belongs to no module
// if the repository has none there.
func (r *Repository) Find(file string) (m Module, rest string, ok bool) {
	file = path.Clean(file)
	length := -1
	for _, candidate := range r.Modules {
		in, inside := file, true
		if candidate.Dir != "." {
			in, inside = strings.CutPrefix(file, candidate.Dir+"/")
		}
		if inside && len(candidate.Dir) > length {
			m, rest, length, ok = candidate, in, len(candidate.Dir), true
		}
	}
	return m, rest, ok
}

// exists reports whether a file or folder is there.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
