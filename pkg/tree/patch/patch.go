package patch

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/tree/folder"
)

//go:embed *.go
var sources embed.FS

// Code identifies the code that decides what patched code is.
var Code = recipe.Of("tree/patch", sources)

// Folder is the folder, in the tree or in a project's folder below images, that holds patches.
const Folder = "patches"

// Suffix is what the names of patches end with. Other files in the folder are no patches.
const Suffix = ".patch"

// Is reports whether a file in a folder of patches is a patch, by its name. Hidden files and backups of editors are not.
func Is(name string) bool { return strings.HasSuffix(name, Suffix) && !folder.Hidden(name) }

// A Series is the patches of an upstream repository, or of a module that it links, in the order in which they apply.
type Series struct {
	Project string // folder of another project below images; "" is Kubernetes
	Module  string // path of a module that the project links; "" is the repository itself
	Patches []*Patch
}

// Dir returns the folder of a series, relative to the tree's root, slash-separated.
func (s Series) Dir() string {
	if s.Project == "" {
		return path.Join(Folder, s.Module)
	}
	return path.Join("images", s.Project, Folder, s.Module)
}

// Name returns the name of a series: "", "etcd", "golang.org/x/net", or "etcd/golang.org/x/net".
func (s Series) Name() string { return path.Join(s.Project, s.Module) }

// SeriesNamed returns the series of a name, without patches: of one that [Series.Name] returns, or Kubernetes' own.
func SeriesNamed(name string) Series {
	project, module, _ := strings.Cut(name, "/")
	switch {
	case name == Kubernetes:
		return Series{}
	case strings.Contains(project, "."):
		return Series{Module: name}
	}
	return Series{Project: project, Module: module}
}

// SeriesOf returns the series that a patch is of, without patches, by the name of its file.
func SeriesOf(file string) Series {
	s := Series{}
	dir := path.Dir(file)
	if rest, ok := strings.CutPrefix(dir, "images/"); ok {
		s.Project, dir, _ = strings.Cut(rest, "/")
	}
	s.Module = strings.TrimPrefix(strings.TrimPrefix(dir, Folder), "/")
	return s
}

// A Patch is a file that holds changes as one commit or several.
type Patch struct {
	Name    string // of the file, relative to the tree's root, slash-separated
	Project string // as in Series
	Module  string // as in Series
	SHA256  string // of the file, hexadecimal
	Data    []byte // of the file
	Text    []byte // the data as git reads them: mails without encodings for the transport
	Commits []Commit
}

// Title returns the title of the first commit that has one, or "".
func (p *Patch) Title() string {
	for _, c := range p.Commits {
		if c.Title != "" {
			return c.Title
		}
	}
	return ""
}

// Mounted returns a patch of a linked module with the paths that a repository has for its changes, see [Repository.Link].
func (p *Patch) Mounted() *Patch {
	m := *p
	m.Commits = slices.Clone(p.Commits)
	for i, c := range m.Commits {
		m.Commits[i].Files = slices.Clone(c.Files)
	}
	m.mount()
	return &m
}

func (p *Patch) mount() {
	if p.Module == "" {
		return
	}
	for _, c := range p.Commits {
		for i := range c.Files {
			for _, name := range []*string{&c.Files[i].Old, &c.Files[i].New} {
				if *name != "" {
					*name = p.prefix() + *name
				}
			}
		}
	}
}

// prefix is what mount puts before paths.
func (p *Patch) prefix() string { return vendor + p.Module + "/" }

// own returns a path as the patch has it.
func (p *Patch) own(name string) string {
	if p.Module == "" {
		return name
	}
	return strings.TrimPrefix(name, p.prefix())
}

// Paths returns the repository paths that the patch changes, each once.
func (p *Patch) Paths() []string {
	var paths []string
	seen := map[string]bool{"": true}
	for _, c := range p.Commits {
		for _, f := range c.Files {
			for _, name := range []string{f.Old, f.New} {
				if !seen[name] {
					seen[name] = true
					paths = append(paths, name)
				}
			}
		}
	}
	return paths
}

// A Commit is changes that belong together, and their author's message. A bare diff is a commit without a message.
type Commit struct {
	Title   string
	Text    []byte // part of the patch's Text: a mail, see IsMail, or a diff
	Message string // what Text has before the first change
	Files   []File
}

// A File is a change of a file.
type File struct {
	Old, New string // repository paths; Old is empty for a new file, New for a deleted one
	Copy     bool   // Old stays

	diff *gitdiff.File
}

// Load returns the patches of the tree in the folder root, a series for each project: Kubernetes' first, then other projects' by name.
// Projects without patches are left out. The patches of modules that a project links come before its own, and their changes have the
// paths of vendored code, see [Repository.Link]. Load's error names every patch that cannot be read.
func Load(root string) ([]Series, error) {
	projects := []string{""}
	images, err := os.ReadDir(filepath.Join(root, "images"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range images {
		projects = append(projects, e.Name())
	}
	var found []Series
	var errs []error
	for _, project := range projects {
		all := Series{Project: project}
		modules, err := LinkedModules(root, project)
		errs = append(errs, err)
		for _, module := range append(modules, "") {
			patches, err := LoadSeries(root, Series{Project: project, Module: module})
			errs = append(errs, err)
			for _, p := range patches {
				p.mount()
			}
			all.Patches = append(all.Patches, patches...)
		}
		if len(all.Patches) > 0 {
			found = append(found, all)
		}
	}
	return found, errors.Join(errs...)
}

// ParseFile reads a patch of the tree as [Load] does.
func ParseFile(root, name string) (*Patch, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	p, err := Parse(name, data)
	if err == nil {
		s := SeriesOf(name)
		p.Project, p.Module = s.Project, s.Module
		p.mount()
	}
	return p, err
}

// LinkedModules returns the paths of the modules that a project links and that have patches of their own, sorted. Its error names every
// patch in a folder that is not named as a module.
func LinkedModules(root, project string) ([]string, error) {
	top := filepath.Join(root, filepath.FromSlash(Series{Project: project}.Dir()))
	var found []string
	var errs []error
	err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, file)
		if err != nil || rel == "." {
			return err
		}
		if folder.Hidden(e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name, ext := filepath.ToSlash(rel), strings.ToLower(filepath.Ext(rel))
		module := path.Dir(name)
		if e.IsDir() || module == "." || ext != Suffix && ext != ".diff" || slices.Contains(found, module) {
			return nil
		}
		if gomod.CheckPath(module) != nil {
			dir := Series{Project: project}.Dir()
			errs = append(errs, &InvalidError{Patch: path.Join(dir, name), Why: "it would not be applied: patches are in " + dir +
				", those of a linked module in a folder that is named as the module, as " + dir + "/golang.org/x/net"})
			return nil
		}
		found = append(found, module)
		return nil
	})
	if err != nil && !folder.Missing(err) {
		return nil, err
	}
	slices.Sort(found)
	return found, errors.Join(errs...)
}

// LoadProject returns the patches of a project's own repository. Its error names every patch that cannot be read, and every file that
// looks like a patch and would not be applied.
func LoadProject(root, project string) ([]*Patch, error) {
	patches, err := LoadSeries(root, Series{Project: project})
	_, misnamed := LinkedModules(root, project)
	return patches, errors.Join(err, misnamed)
}

// LoadSeries returns the patches of one series, which has none itself, with the paths that they have in their files. Its error names every
// patch that cannot be read, and every file that looks like a patch and would not be applied.
func LoadSeries(root string, s Series) ([]*Patch, error) {
	dir := s.Dir()
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil && !folder.Missing(err) {
		return nil, err
	}
	var patches []*Patch
	var errs []error
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if folder.Hidden(e.Name()) || e.IsDir() {
			continue
		}
		if !strings.HasSuffix(e.Name(), Suffix) {
			errs = append(errs, overlooked(name))
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p, err := Parse(name, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Project, p.Module = s.Project, s.Module
		patches = append(patches, p)
	}
	if err := checkSeries(root, dir, patches); err != nil {
		errs = append(errs, err)
	}
	return patches, errors.Join(errs...)
}

// overlooked returns an error for a file that looks like a patch, but is not applied.
func overlooked(name string) error {
	if ext := strings.ToLower(path.Ext(name)); ext == Suffix || ext == ".diff" {
		return &InvalidError{Patch: name, Why: "it would not be applied: the names of patches end with " + Suffix}
	}
	return nil
}

// checkSeries returns an error if there is a list of patches, as quilt has, that differs from the patches or their order.
func checkSeries(root, dir string, patches []*Patch) error {
	name := path.Join(dir, "series")
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		if folder.Missing(err) {
			return nil
		}
		return err
	}
	var listed, applied []string
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			listed = append(listed, fields[0])
		}
	}
	for _, p := range patches {
		applied = append(applied, path.Base(p.Name))
	}
	if !slices.Equal(listed, applied) {
		return &InvalidError{Patch: name, Why: fmt.Sprintf("it lists %q, but %q are applied: every file that ends with %s, in the order of "+
			"the names",
			listed, applied, Suffix)}
	}
	return nil
}

// sum returns the SHA-256 of data.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
