package patching

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/patch"
)

// A Desk is a project of a tree, whose patches are edited. The caller has checked its name with upstream.CheckProject, and holds the tree's
// lock.
type Desk struct {
	Root       string // of the tree
	Components string // the folder of the components' module: "cmd"
	Project    string // "k8s.io/kubernetes", "etcd"
	Copy       string // folder to edit in; empty is the one below Copies
	Go         func(context.Context) (upstream.Go, error)
	Progress   func(string) // what takes seconds; may be nil
}

// Copies is the folder, relative to the tree's root, with the copies that are edited.
const Copies = "_output/edit"

// An UnsavedError says that work in a copy is in no patch.
type UnsavedError struct {
	Project string // as in Desk
	Copy    string
	What    string // "2 commits that are in no patch"
}

func (e *UnsavedError) Error() string { return fmt.Sprintf("%s has %s", e.Copy, e.What) }

// open reads the record of the copy. It is nil if there is no copy.
func (d *Desk) open() (*git.Repo, *record, error) {
	repo, err := git.At(d.Folder())
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
	if err == nil && rec.Project != d.Project {
		err = fmt.Errorf("%s is a copy of %s, not of %s", repo.Dir, rec.Project, d.Project)
	}
	return repo, rec, err
}

// Folder returns the folder of the copy.
func (d *Desk) Folder() string {
	if d.Copy != "" {
		return d.Copy
	}
	return filepath.Join(d.Root, filepath.FromSlash(Copies), path.Base(d.Project))
}

func (d *Desk) progress(format string, args ...any) {
	if d.Progress != nil {
		d.Progress(fmt.Sprintf(format, args...))
	}
}

// series is the project's series of patches, without the patches.
func (d *Desk) series() patch.Series {
	if d.Project == upstream.Kubernetes {
		return patch.Series{}
	}
	return patch.Series{Project: d.Project}
}

// repository returns which modules upstream's repository consists of, as patches see it.
func (d *Desk) repository() (*patch.Repository, error) {
	return patch.RepositoryOf(d.Root, d.Components, d.series())
}

// upstream finds the modules of the project.
func (d *Desk) upstream(ctx context.Context) (*upstream.Repository, error) {
	g, err := d.Go(ctx)
	if err != nil {
		return nil, err
	}
	return upstream.Open(ctx, g, d.Root, d.Components, d.Project)
}

// modules returns upstream's code as it is in the module cache.
func modules(r *patch.Repository, up *upstream.Repository) patch.Tree {
	return patch.Modules{Repository: r, Dir: func(p patch.Place) (string, error) {
		for _, m := range up.Modules {
			if m.Path == p.Module || m.Dir == path.Clean(p.Folder) {
				return m.Source, nil
			}
		}
		return "", fmt.Errorf("module %s is none of %s", p.Module, up.Path)
	}}
}

// UnsavedWork returns what is in copies below Copies and in no patch.
func UnsavedWork(ctx context.Context, root string) ([]*UnsavedError, error) {
	records, err := filepath.Glob(recordFile(filepath.Join(root, filepath.FromSlash(Copies), "*")))
	if err != nil {
		return nil, err
	}
	var found []*UnsavedError
	for _, file := range records {
		dir := filepath.Dir(filepath.Dir(file))
		if strings.HasPrefix(filepath.Base(dir), ".") {
			continue // a killed run's copy that is not whole
		}
		repo, err := git.At(dir)
		if err != nil {
			return nil, err
		}
		rec, err := readRecord(repo.Dir)
		if err != nil {
			return nil, err
		}
		err = unsaved(ctx, repo, rec)
		if work, ok := errors.AsType[*UnsavedError](err); ok {
			found = append(found, work)
		} else if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Unsaved returns what is in the copy of a project and in no patch: an *UnsavedError, or nil.
func (d *Desk) Unsaved(ctx context.Context) error {
	repo, rec, err := d.open()
	if err != nil || rec == nil {
		return err
	}
	return unsaved(ctx, repo, rec)
}

func unsaved(ctx context.Context, repo *git.Repo, rec *record) error {
	if what := inProgress(repo); what != "" {
		return &UnsavedError{rec.Project, repo.Dir, what + " in progress"}
	}
	dirty, err := repo.Line(ctx, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return err
	}
	if n := len(strings.Split(dirty, "\n")); dirty != "" {
		return &UnsavedError{rec.Project, repo.Dir, count(n, "file") + " with changes that are not committed"}
	}
	stash, err := repo.Line(ctx, "for-each-ref", "refs/stash")
	if err != nil {
		return err
	}
	if stash != "" {
		return &UnsavedError{rec.Project, repo.Dir, "a stash"}
	}
	head, err := repo.Line(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if head == rec.Tip {
		return resolutions(ctx, repo, rec)
	}
	ahead, err := repo.Line(ctx, "rev-list", "--count", rec.Tip+"..HEAD")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(ahead)
	if err != nil {
		return fmt.Errorf("git rev-list --count: %w", err)
	}
	if n == 0 {
		return &UnsavedError{rec.Project, repo.Dir, "fewer commits than there are patches"}
	}
	return inNoPatch(repo, rec, n)
}

// resolutions returns which commits a person made to resolve a conflict, and no patch has yet.
func resolutions(ctx context.Context, repo *git.Repo, rec *record) error {
	saved := map[string]bool{}
	for _, p := range rec.Patches {
		for _, c := range p.Commits {
			saved[c.ID] = !c.Resolved
		}
	}
	commits, err := repo.Line(ctx, "log", "--format=%H %ce", rec.Base+"..HEAD")
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.SplitSeq(commits, "\n") {
		if id, email, ok := strings.Cut(line, " "); ok && email != git.Email && !saved[id] {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return inNoPatch(repo, rec, n)
}

func inNoPatch(repo *git.Repo, rec *record, n int) error {
	what := " that are in no patch"
	if n == 1 {
		what = " that is in no patch"
	}
	return &UnsavedError{rec.Project, repo.Dir, count(n, "commit") + what}
}

// inProgress returns which of git's operations with several steps is not finished, or "".
func inProgress(repo *git.Repo) string {
	for _, state := range []struct{ file, operation string }{
		{"rebase-apply", "git am"}, {"rebase-merge", "git rebase"}, {"MERGE_HEAD", "git merge"}, {"CHERRY_PICK_HEAD", "git cherry-pick"},
		{"REVERT_HEAD", "git revert"},
	} {
		if _, err := os.Lstat(filepath.Join(repo.Dir, ".git", state.file)); err == nil {
			return state.operation
		}
	}
	return ""
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
