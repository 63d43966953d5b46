package patch

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/module"
)

// Kubernetes is the module in the top folder of Kubernetes' repository.
const Kubernetes = "k8s.io/kubernetes"

// staging is the folder of Kubernetes' repository with the modules that are published on their own.
const staging = "staging/src/k8s.io/"

// A Repository is upstream's source code, as its Go modules hold it.
type Repository struct {
	// Places has the folders with a module of their own, the deepest first.
	Places     []Place
	kubernetes bool // it is Kubernetes'

	links  string  // the folder of the Go module whose other requirements it holds, or ""
	linked []Place // these, below vendor, the deepest first
}

// vendor is the folder of a repository with the modules that it links.
const vendor = "vendor/"

// Link adds the other modules that a Go module of the tree requires, where a repository has them if it vendors them: below vendor.
func (r *Repository) Link(m *module.Module) {
	r.links = m.Name
	for _, d := range m.Requires {
		if _, own := r.Place(d.Path); own {
			continue
		}
		p := Place{vendor + d.Path, d.Path, d.Version}
		if code := d.Code(); code.Path == d.Path { // another version may replace it
			p.Version = code.Version
		}
		r.linked = append(r.linked, p)
	}
	deepestFirst(r.linked)
}

// Alone returns a linked module as a repository of its own.
func (r *Repository) Alone(module string) *Repository {
	alone := &Repository{}
	if p, ok := r.link(module); ok {
		alone.Places = []Place{{"", p.Module, p.Version}}
	}
	return alone
}

// link returns a linked module.
func (r *Repository) link(module string) (Place, bool) {
	i := slices.IndexFunc(r.linked, func(p Place) bool { return p.Module == module })
	if i < 0 {
		return Place{}, false
	}
	return r.linked[i], true
}

// CheckLinked returns an error if a module is none that [Repository.Link] has added.
func (r *Repository) CheckLinked(module string) error {
	if _, ok := r.link(module); ok {
		return nil
	}
	var known []string
	for _, p := range r.linked {
		known = append(known, p.Module)
	}
	return badrequest.Mark(fmt.Errorf("%s/go.mod requires no module %s%s", r.links, module, suggest.DidYouMean(suggest.Near(module, known))))
}

// LinkedBy returns the linked modules that patches change.
func (r *Repository) LinkedBy(patches []*Patch) []Place {
	var found []Place
	for _, p := range patches {
		for _, in := range r.Changed(p) {
			if strings.HasPrefix(in.Folder, vendor) && !slices.Contains(found, in) {
				found = append(found, in)
			}
		}
	}
	return found
}

// LinkedPackages returns the import paths of the packages of linked modules that a patch changes, and whether it changes nothing else that
// is compiled.
func (r *Repository) LinkedPackages(p *Patch) (packages []string, all bool) {
	all = true
	for _, name := range p.Paths() {
		in, file, why := r.Locate(name)
		switch {
		case why != "":
		case !strings.HasPrefix(in.Folder, vendor):
			all = false
		case !inNoProgram(name):
			packages = append(packages, path.Join(in.Module, path.Dir(file)))
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages), all && len(packages) > 0
}

// locateLinked is Locate for a path below vendor.
func (r *Repository) locateLinked(name string) (in Place, file, why string) {
	for _, p := range r.linked {
		file, ok := strings.CutPrefix(name, p.Folder+"/")
		switch {
		case !ok:
		case inNoZip(file):
			return Place{}, "", "modules hold no vendored code"
		default:
			return p, file, ""
		}
	}
	for _, p := range r.Places {
		if strings.HasPrefix(name, vendor+p.Module+"/") {
			return Place{}, "", fmt.Sprintf("%s is of the repository itself: its patches are those of the repository", p.Module)
		}
	}
	return Place{}, "", r.links + "/go.mod requires no module that has it"
}

// unpublished are the folders of Kubernetes' repository with modules that are not published.
var unpublished = []string{"hack/tools", staging + "code-generator/examples", staging + "kms/internal/plugins/_mock"}

// A Place is a folder of a repository that is a Go module.
type Place struct {
	Folder  string // in the repository; "" is the top
	Module  string // path of the module
	Version string // that the tree requires
}

// Path returns the repository path of a file of the module.
func (p Place) Path(file string) string { return path.Join(p.Folder, file) }

// KubernetesRepository returns Kubernetes' repository with the modules that the components' module requires.
func KubernetesRepository(m *module.Module) (*Repository, error) {
	own, ok := m.Require(Kubernetes)
	if !ok {
		return nil, fmt.Errorf("%s/go.mod does not require %s", m.Name, Kubernetes)
	}
	r := &Repository{
		Places:     []Place{{"", Kubernetes, own.Version}},
		kubernetes: true,
	}
	_, minor, _ := strings.Cut(own.Version, ".") // 37.1 of v1.37.1
	minor, _, _ = strings.Cut(minor, ".")
	for _, d := range m.Requires {
		name, ok := strings.CutPrefix(d.Path, "k8s.io/")
		if ok && !strings.Contains(name, "/") && strings.HasPrefix(d.Version, "v0."+minor+".") {
			r.Places = append(r.Places, Place{staging + name, d.Path, d.Version})
		}
	}
	r.sort()
	return r, nil
}

// ProjectRepository returns the repository of another project: of what the module in the project's folder below images requires
// directly.
func ProjectRepository(project string, m *module.Module) (*Repository, error) {
	var roots []string
	for _, d := range m.Requires {
		if root := module.Repository(d.Path); d.Direct && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	if len(roots) > 1 { // coredns needs a repository of its library, too
		roots = slices.DeleteFunc(roots, func(root string) bool { return path.Base(root) != project })
	}
	if len(roots) != 1 {
		return nil, fmt.Errorf("%s/go.mod does not say which repository the patches are for: it must require modules of one repository "+
			"directly, or of one that is called %s", m.Name, project)
	}
	r := &Repository{}
	for _, d := range m.Requires {
		if module.Repository(d.Path) == roots[0] {
			prefix, major, _ := gomod.SplitPathVersion(d.Path)
			folder := strings.TrimPrefix(strings.TrimPrefix(prefix, roots[0]), "/")
			r.Places = append(r.Places, Place{folder, d.Path, d.Version})
			if strings.HasPrefix(major, "/") { // some repositories have a folder for a major version, as etcd has client/v3 besides server
				r.Places = append(r.Places, Place{path.Join(folder, major), d.Path, d.Version})
			}
		}
	}
	r.sort()
	return r, nil
}

// RepositoryOf returns the repository of the project that a series is of, with what it links. Components is the folder of the components'
// module.
func RepositoryOf(root, components string, s Series) (*Repository, error) {
	if s.Project == "" {
		m, err := module.Load(root, components)
		if err != nil {
			return nil, err
		}
		return LinkingRepository("", m)
	}
	m, err := module.Load(root, path.Join("images", s.Project))
	if err != nil {
		return nil, fmt.Errorf("%s: the project has no Go module to patch: %w", s.Dir(), err)
	}
	return LinkingRepository(s.Project, m)
}

// LinkingRepository returns the repository of a project, named as in [Series], with what it links.
func LinkingRepository(project string, m *module.Module) (r *Repository, err error) {
	if project == "" {
		r, err = KubernetesRepository(m)
	} else {
		r, err = ProjectRepository(project, m)
	}
	if err == nil {
		r.Link(m)
	}
	return r, err
}

func (r *Repository) sort() { deepestFirst(r.Places) }

func deepestFirst(places []Place) {
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(len(b.Folder), len(a.Folder)), strings.Compare(a.Folder, b.Folder))
	})
}

// Place returns where a module is in the repository.
func (r *Repository) Place(module string) (Place, bool) {
	i := slices.IndexFunc(r.Places, func(p Place) bool { return p.Module == module })
	if i < 0 {
		return Place{}, false
	}
	return r.Places[i], true
}

// Locate returns the module that a repository path belongs to, and the path of the file in it. If no module of the tree has the file,
// it says why instead. Of go.mod and go.sum files, the tree has its own.
func (r *Repository) Locate(name string) (in Place, file, why string) {
	if in, file, why = r.locate(name); why == "" && (path.Base(name) == "go.mod" || path.Base(name) == "go.sum") {
		return Place{}, "", "the tree's own " + path.Base(name) + " has what it requires"
	}
	return in, file, why
}

// Changed returns the modules that a patch changes, each once, if it applies.
func (r *Repository) Changed(p *Patch) []Place {
	wanted, _ := r.requires(p)
	var found []Place
	for _, name := range p.Paths() {
		in, _, why := r.Locate(name)
		comes := p.Module == "" && strings.HasPrefix(in.Folder, vendor) && wanted[in.Module] != ""
		if why == "" && !comes && !slices.Contains(found, in) {
			found = append(found, in)
		}
	}
	return found
}

func (r *Repository) locate(name string) (in Place, file, why string) {
	if r.links != "" && strings.HasPrefix(name, vendor) {
		return r.locateLinked(name)
	}
	if inNoZip(name) {
		return Place{}, "", "modules hold no vendored code; require the module that you need in the go.mod of the tree"
	}
	if r.kubernetes {
		if why := r.apart(name); why != "" {
			return Place{}, "", why
		}
	}
	for _, p := range r.Places {
		if within(name, p.Folder) {
			return p, strings.TrimPrefix(strings.TrimPrefix(name, p.Folder), "/"), ""
		}
	}
	return Place{}, "", "no module that the tree requires has it"
}

// apart returns why no module has a path of Kubernetes' repository, although it is in a module's folder, or "".
func (r *Repository) apart(name string) string {
	if isUnpublished(name) {
		return "it is in a module that is not published"
	}
	if top, _, _ := strings.Cut(name, "/"); slices.Contains(documents, top) {
		return "no code is made from it"
	}
	if name, ok := strings.CutPrefix(name, staging); ok {
		name, _, _ = strings.Cut(name, "/")
		if _, ok := r.Place("k8s.io/" + name); !ok {
			return "the tree does not require the module k8s.io/" + name
		}
	}
	return ""
}

func isUnpublished(name string) bool {
	return slices.ContainsFunc(unpublished, func(folder string) bool { return within(name, folder) })
}

// documents are the top folders and files of Kubernetes' repository that nothing is compiled or tested with.
var documents = []string{"CHANGELOG", "docs", "logo", ".github"}

// prose reports whether a file is a document by its name. A module may lack it.
func prose(name string) bool {
	base := path.Base(name)
	return path.Ext(base) == ".md" || base == "OWNERS" || base == "OWNERS_ALIASES" || strings.HasPrefix(base, ".git")
}

// inNoZip reports whether a path is one that module zips leave out.
func inNoZip(name string) bool {
	return strings.HasPrefix(name, "vendor/") || strings.Contains(name, "/vendor/")
}

// within reports whether a path is a folder's or below it.
func within(name, folder string) bool {
	return folder == "" || name == folder || strings.HasPrefix(name, folder+"/")
}

// Packages returns the import paths of the folders in which patches change Go files or what is beside them, sorted.
func (r *Repository) Packages(patches []*Patch) []string {
	var found []string
	for _, p := range patches {
		for _, name := range p.Paths() {
			if in, file, why := r.Locate(name); why == "" {
				found = append(found, path.Join(in.Module, path.Dir(file)))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// A Tree reads files of a repository.
type Tree interface {
	// ReadFile returns the content of the file at a repository path, or an error that is fs.ErrNotExist.
	ReadFile(name string) ([]byte, error)
}

// Modules is a repository whose modules are in folders, such as those of the module cache.
type Modules struct {
	*Repository
	// Dir returns the folder of a module. Only modules that are read are asked for.
	Dir func(Place) (string, error)
}

// ReadFile reads a file of the module that has it.
func (m Modules) ReadFile(name string) ([]byte, error) {
	in, file, why := m.locate(name)
	if why != "" {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	dir, err := m.Dir(in)
	if err != nil {
		return nil, err
	}
	return Dir(dir).ReadFile(file)
}

// Dir is a tree in a folder, such as a clone of a repository.
type Dir string

// ReadFile reads a file below the folder.
func (d Dir) ReadFile(name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(d), filepath.FromSlash(name)))
	if err != nil && folder.Missing(err) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return data, err
}
