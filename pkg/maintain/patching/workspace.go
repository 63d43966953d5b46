package patching

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// A Workspace is a project of a tree whose patches are edited, or a module that it links. The caller has checked its name with Check, and
// holds the tree's lock.
type Workspace struct {
	Root       string // of the tree
	Components string // the folder of the components' module: "cmd"
	Project    string // "k8s.io/kubernetes", "etcd", or what they link: "golang.org/x/net", "etcd/golang.org/x/net"
	Copy       string // folder to edit in; the default is below Copies
	Go         func(context.Context) (upstream.Go, error)
	Progress   func(string) // may be nil

	assumed []gomod.Version // of Try
}

// Copies is the folder, relative to the tree's root, with the copies that are edited.
const Copies = "_output/edit"

// An UnsavedError reports work in a copy that is in no patch.
type UnsavedError struct {
	Project string // as in Workspace
	Copy    string
	What    string // "2 commits that are in no patch"
}

func (e *UnsavedError) Error() string { return fmt.Sprintf("%s has %s", e.Copy, e.What) }

// A record, in the copy's .git, is the state of a copy when slipway last wrote to it.
type record struct {
	Project string            `json:"project"`
	Version string            `json:"version"` // of upstream
	Key     string            `json:"key"`     // of upstream's code
	Base    string            `json:"base"`    // the commit with upstream's code
	Tip     string            `json:"tip"`     // the last commit; empty if git am stopped at a conflict
	Patches map[string][]byte `json:"patches"` // by base name
}

func recordFile(dir string) string { return filepath.Join(dir, ".git", "slipway.json") }

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(recordFile(dir))
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", recordFile(dir), err)
	}
	return r, nil
}

func (r *record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(recordFile(dir), append(data, '\n'), 0o666)
}

// open opens the copy. The record is nil if there is no copy.
func (w *Workspace) open() (*git.Repo, *record, error) {
	repo, err := git.At(w.Folder())
	if err != nil {
		return nil, nil, err
	}
	rec, err := readRecord(repo.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(repo.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if len(entries) > 0 {
			return nil, nil, fmt.Errorf("%s is no copy that was laid out to edit patches: choose another folder, or remove it", repo.Dir)
		}
		return repo, nil, nil
	}
	if err == nil && rec.Project != w.Project {
		err = fmt.Errorf("%s is a copy of %s, not of %s", repo.Dir, rec.Project, w.Project)
	}
	return repo, rec, err
}

// Folder returns the folder of the copy.
func (w *Workspace) Folder() string {
	if w.Copy != "" {
		return w.Copy
	}
	name := path.Base(w.Project)
	if w.series().Module != "" {
		name = strings.ReplaceAll(w.Project, "/", "_")
	}
	return filepath.Join(w.Root, filepath.FromSlash(Copies), name)
}

func (w *Workspace) abs(name string) string { return filepath.Join(w.Root, filepath.FromSlash(name)) }

// series is the project's series of patches, without the patches.
func (w *Workspace) series() patch.Series { return patch.SeriesNamed(w.Project) }

// Check returns an error if the tree has no such project, or the project has no such module to patch.
func (w *Workspace) Check() error {
	s := w.series()
	if s.Module == "" {
		return upstream.CheckProject(w.Root, w.Project)
	}
	if err := upstream.CheckProject(w.Root, cmp.Or(s.Project, upstream.Kubernetes)); err != nil {
		return err
	}
	repository, err := w.whole()
	if err != nil {
		return err
	}
	if _, own := repository.Place(s.Module); own {
		return badrequest.Mark(fmt.Errorf("%s is of %s itself: its patches are in %s, with the paths of the repository", s.Module,
			cmp.Or(s.Project, upstream.Kubernetes), patch.Series{Project: s.Project}.Dir()))
	}
	return repository.CheckLinked(s.Module)
}

// Projects lists what a tree may patch: its projects, and of what they link, the modules that have patches.
func Projects(root string) ([]string, error) {
	all, err := upstream.Projects(root)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, project := range all {
		s := patch.SeriesNamed(project)
		modules, err := patch.LinkedModules(root, s.Project)
		if err != nil {
			return nil, err
		}
		for _, s.Module = range modules {
			list = append(list, s.Name())
		}
		list = append(list, project)
	}
	return list, nil
}

// load reads the project's patches.
func (w *Workspace) load() ([]*patch.Patch, error) {
	s := w.series()
	if s.Module == "" {
		return patch.LoadProject(w.Root, s.Project)
	}
	return patch.LoadSeries(w.Root, s)
}

// repository returns the modules of what is edited.
func (w *Workspace) repository() (*patch.Repository, error) {
	whole, err := w.whole()
	if s := w.series(); err == nil && s.Module != "" {
		return whole.Alone(s.Module), nil
	}
	return whole, err
}

// whole returns the modules of upstream's repository, and of what it links.
func (w *Workspace) whole() (*patch.Repository, error) {
	repository, err := patch.RepositoryOf(w.Root, w.Components, w.series())
	if err == nil {
		repository.Raise(w.assumed)
	}
	return repository, err
}

// GoModule returns the folder of the Go module that requires what is patched.
func (w *Workspace) GoModule() string {
	if project := w.series().Project; project != "" {
		return "images/" + project
	}
	return w.Components
}

// A source is the code that patches are for.
type source struct {
	*upstream.Repository
	before []*patch.Patch // of linked modules that the patches change, too: these apply first
}

// Key returns a digest of what a copy consists of.
func (s *source) Key() string {
	key := s.Repository.Key()
	for _, p := range s.before {
		key += " " + p.SHA256
	}
	return key
}

// upstream finds the code that patches are for: that of the project's modules, and of linked modules that the patches change.
func (w *Workspace) upstream(ctx context.Context, patches []*patch.Patch) (*source, error) {
	g, err := w.Go(ctx)
	if err != nil {
		return nil, err
	}
	s, folder := w.series(), w.GoModule()
	if s.Module != "" {
		up, err := upstream.OpenLinked(ctx, g, w.Root, folder, s.Module)
		return &source{Repository: up}, err
	}
	up, err := upstream.Open(ctx, g, w.Root, w.Components, w.Project)
	if err != nil {
		return nil, err
	}
	repository, err := w.whole()
	if err != nil {
		return nil, err
	}
	src := &source{Repository: up}
	for _, at := range repository.LinkedBy(patches) {
		linked, err := upstream.OpenLinked(ctx, g, w.Root, folder, at.Module)
		if err != nil {
			return nil, err
		}
		m := linked.Modules[0]
		m.Dir = at.Folder
		up.Modules = append(up.Modules, m)
		before, err := patch.LoadSeries(w.Root, patch.Series{Project: s.Project, Module: at.Module})
		if err != nil {
			return nil, err
		}
		for _, p := range before {
			src.before = append(src.before, p.Mounted())
		}
	}
	return src, nil
}

// UnsavedWork returns the work in copies below Copies that is in no patch.
func UnsavedWork(ctx context.Context, root string) ([]*UnsavedError, error) {
	copies := filepath.Join(root, filepath.FromSlash(Copies))
	records, err := fs.Glob(os.DirFS(copies), filepath.ToSlash(recordFile("*")))
	if err != nil {
		return nil, err
	}
	var found []*UnsavedError
	for _, file := range records {
		dir := filepath.Join(copies, filepath.FromSlash(path.Dir(path.Dir(file))))
		if strings.HasPrefix(filepath.Base(dir), ".") {
			continue // an incomplete copy of a killed run
		}
		repo, err := git.At(dir)
		if err != nil {
			return nil, err
		}
		rec, err := readRecord(repo.Dir)
		if err != nil {
			return nil, err
		}
		err = rec.unsaved(ctx, repo)
		if work, ok := errors.AsType[*UnsavedError](err); ok {
			found = append(found, work)
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Unsaved returns an *UnsavedError if the copy has work that is in no patch.
func (w *Workspace) Unsaved(ctx context.Context) error {
	repo, rec, err := w.open()
	if err != nil || rec == nil {
		return err
	}
	return rec.unsaved(ctx, repo)
}

func (r *record) unsaved(ctx context.Context, repo *git.Repo) error {
	if err := r.unsavedHere(ctx, repo); err != nil {
		return err
	}
	elsewhere, err := repo.Line(ctx, "rev-list", "--count", "--branches", "--not", cmp.Or(r.Tip, r.Base), "HEAD")
	if err != nil || elsewhere == "0" {
		return err
	}
	return &UnsavedError{r.Project, repo.Dir, countCommits(elsewhere) + " on other branches"}
}

// countCommits returns a number of commits in words.
func countCommits(n string) string {
	if n == "1" {
		return "1 commit"
	}
	return n + " commits"
}

// unsavedHere is like unsaved, but does not look at branches that are not checked out: they stay when a copy is used again.
func (r *record) unsavedHere(ctx context.Context, repo *git.Repo) error {
	unsaved := func(what string) error { return &UnsavedError{r.Project, repo.Dir, what} }
	if err := r.uncommitted(ctx, repo); err != nil {
		return err
	}
	if stash, err := repo.Line(ctx, "for-each-ref", "refs/stash"); err != nil {
		return err
	} else if stash != "" {
		return unsaved("a stash")
	}
	diverged, err := repo.Line(ctx, "rev-list", "--count", "--left-right", cmp.Or(r.Tip, r.Base)+"...HEAD")
	if err != nil {
		return err
	}
	behind, ahead, _ := strings.Cut(diverged, "\t")
	switch {
	case behind == "0" && ahead == "0": // without a tip, git am was aborted
		return nil
	case r.Tip == "":
		return unsaved("resolved conflicts that are in no patch")
	case ahead == "1":
		return unsaved("1 commit that is in no patch")
	case ahead != "0":
		return unsaved(ahead + " commits that are in no patch")
	}
	return unsaved("fewer commits than there are patches")
}

// uncommitted returns an *UnsavedError if an operation of git is not finished, or changes are not committed.
func (r *record) uncommitted(ctx context.Context, repo *git.Repo) error {
	for _, state := range []struct{ file, operation string }{
		{"rebase-apply", "git am"}, {"rebase-merge", "git rebase"}, {"MERGE_HEAD", "git merge"}, {"CHERRY_PICK_HEAD", "git cherry-pick"},
		{"REVERT_HEAD", "git revert"},
	} {
		if _, err := os.Lstat(filepath.Join(repo.Dir, ".git", state.file)); err == nil {
			return &UnsavedError{r.Project, repo.Dir, state.operation + " in progress"}
		}
	}
	repo = repo.With("GIT_OPTIONAL_LOCKS=0") // a killed run leaves none
	dirty, err := repo.Line(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil || dirty == "" {
		return err
	}
	files := "1 file"
	if n := strings.Count(dirty, "\n") + 1; n > 1 {
		files = strconv.Itoa(n) + " files"
	}
	return &UnsavedError{r.Project, repo.Dir, files + " with changes that are not committed"}
}

// aborted reports whether git am stopped at a conflict, and was aborted.
func (r *record) aborted(ctx context.Context, repo *git.Repo) (bool, error) {
	if r.Tip != "" {
		return false, nil
	}
	head, err := repo.Line(ctx, "rev-parse", "HEAD")
	return head == r.Base, err
}
