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

// A Series is the patches of an upstream repository, in the order in which they apply.
type Series struct {
	Project string // folder of another project below images; "" is Kubernetes
	Patches []*Patch
}

// Dir returns the folder of a series, relative to the tree's root, slash-separated.
func (s Series) Dir() string {
	if s.Project == "" {
		return Folder
	}
	return path.Join("images", s.Project, Folder)
}

// A Patch is a file that holds changes as one commit or several.
type Patch struct {
	Name    string // of the file, relative to the tree's root, slash-separated
	Project string // as in Series
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

// Load returns the patches of the tree in the folder root: Kubernetes' first, then other projects' by name. Projects without patches are
// left out. Its error names every patch that cannot be read.
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
		patches, err := LoadProject(root, project)
		errs = append(errs, err)
		if len(patches) > 0 {
			found = append(found, Series{project, patches})
		}
	}
	return found, errors.Join(errs...)
}

// LoadProject returns the patches of one project, named as in [Series]. Its error names every patch that cannot be read, and every file
// that looks like a patch and would not be applied.
func LoadProject(root, project string) ([]*Patch, error) {
	dir := Series{Project: project}.Dir()
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil && !folder.Missing(err) {
		return nil, err
	}
	var patches []*Patch
	var errs []error
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if folder.Hidden(e.Name()) {
			continue
		}
		if !strings.HasSuffix(e.Name(), Suffix) || e.IsDir() {
			errs = append(errs, overlooked(root, name, e))
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
		p.Project = project
		patches = append(patches, p)
	}
	if err := checkSeries(root, dir, patches); err != nil {
		errs = append(errs, err)
	}
	return patches, errors.Join(errs...)
}

// overlooked returns an error for a file or folder that looks like patches, but is not applied.
func overlooked(root, name string, e fs.DirEntry) error {
	if !e.IsDir() {
		if ext := strings.ToLower(path.Ext(name)); ext == Suffix || ext == ".diff" {
			return &InvalidError{Patch: name, Why: "it would not be applied: the names of patches end with " + Suffix}
		}
		return nil
	}
	return filepath.WalkDir(filepath.Join(root, filepath.FromSlash(name)), func(file string, e fs.DirEntry, err error) error {
		if ext := strings.ToLower(filepath.Ext(file)); err != nil || e.IsDir() || ext != Suffix && ext != ".diff" {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return &InvalidError{Patch: filepath.ToSlash(rel), Why: "it would not be applied: patches are in " + path.Dir(name) +
			", and not in folders below"}
	})
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
