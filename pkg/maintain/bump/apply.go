package bump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/worktree"
)

// workDir returns the folder for what a bump prepares: the copy of the tree, git's index of it, and the undo log.
func workDir(root string) string {
	return filepath.Join(root, filepath.FromSlash(folder.State), "bump")
}

func copyDir(root string) string  { return filepath.Join(workDir(root), "tree") }
func undoFile(root string) string { return filepath.Join(workDir(root), "undo.json") }

// open returns the repository of the tree.
func open(root string, env func(string) string) (*worktree.Repo, error) {
	repo, err := worktree.Open(root, env)
	if errors.Is(err, worktree.ErrNone) {
		return nil, errors.New("the tree is not a git repository, without which a bump cannot be undone: " +
			"make it one, and commit its files first")
	}
	if err != nil {
		return nil, err
	}
	return repo.With("GIT_LITERAL_PATHSPECS=1"), nil
}

// list runs a git command that prints names, and returns them.
func list(ctx context.Context, repo *worktree.Repo, args ...string) ([]string, error) {
	out, err := repo.Run(ctx, nil, append(args, "-z")...)
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(name string) bool { return name == "" }), err
}

// withIndex returns the repository with an index of its own, a file in workDir, that has a commit. The user's index may be locked, or have
// flags that hide changes.
func withIndex(ctx context.Context, repo *worktree.Repo, name, commit string) (*worktree.Repo, error) {
	file := filepath.Join(workDir(repo.Root), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return nil, err
	}
	own := repo.With("GIT_INDEX_FILE=" + file)
	_, err := own.Run(ctx, nil, "read-tree", commit)
	return own, err
}

// changesSince lists the tracked files with changes since a commit, in the tree or in the user's index. Own is the repository with an index
// that has the commit. Files that a sparse checkout leaves out are no changes.
func changesSince(ctx context.Context, repo, own *worktree.Repo, commit string) ([]string, error) {
	changed, err := differing(ctx, own, commit)
	if err != nil {
		return nil, err
	}
	staged, err := list(ctx, repo, "diff", "--cached", "--name-only", "--no-renames", commit)
	if err != nil {
		return nil, err
	}
	tagged, err := list(ctx, repo, "ls-files", "-t")
	if err != nil {
		return nil, err
	}
	changed = slices.DeleteFunc(changed, func(name string) bool {
		_, err := os.Lstat(filepath.Join(repo.Root, filepath.FromSlash(name)))
		return errors.Is(err, fs.ErrNotExist) && slices.Contains(tagged, "S "+name)
	})
	changed = append(changed, staged...)
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// differing lists the tracked files in which a work tree differs from a commit.
func differing(ctx context.Context, repo *worktree.Repo, commit string) ([]string, error) {
	return list(ctx, repo, "diff", "--name-only", "--no-renames", "--ignore-submodules=none", commit)
}

// copyTree copies the tracked files. It refuses a tree in which they differ from the last commit.
func (p *preparation) copyTree(ctx context.Context) error {
	repo, err := open(p.Root, p.Getenv)
	if err != nil {
		return err
	}
	commit, err := repo.Run(ctx, nil, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return fmt.Errorf("find the last commit: %w", err)
	}
	p.commit = strings.TrimSpace(string(commit))
	if err := errors.Join(os.RemoveAll(workDir(p.Root)), os.MkdirAll(copyDir(p.Root), 0o777)); err != nil {
		return err
	}
	p.repo = repo
	if p.own, err = withIndex(ctx, repo, "index", p.commit); err != nil {
		return err
	}
	p.copied = p.own.With("GIT_WORK_TREE=" + copyDir(p.Root))
	dirty, err := changesSince(ctx, repo, p.own, p.commit)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		return notCommitted("changes to ", dirty)
	}
	untracked, err := list(ctx, repo, "ls-files", "--others", "patches", "images")
	if err != nil {
		return err
	}
	untracked = slices.DeleteFunc(untracked, func(name string) bool {
		return path.Ext(name) != ".patch" || !slices.Contains(strings.Split(path.Dir(name), "/"), "patches")
	})
	if len(untracked) > 0 { // a build applies them
		return notCommitted("", untracked)
	}
	if _, err = p.own.Run(ctx, nil, "checkout-index", "--all", "--prefix="+copyDir(p.Root)+"/"); err != nil {
		// git names each file that it cannot write, and not why.
		if err := os.WriteFile(filepath.Join(copyDir(p.Root), "room"), make([]byte, 1<<20), 0o666); err != nil {
			return err
		}
	}
	return err
}

func notCommitted(what string, names []string) error {
	more := ""
	if len(names) > 3 {
		more = fmt.Sprintf(" and %d more", len(names)-3)
	}
	return fmt.Errorf("%s%s%s are not committed: commit or stash them first", what, strings.Join(names[:min(3, len(names))], ", "), more)
}

// changes lists the files that the bump changes or removes, and those that it adds.
func (p *preparation) changes(ctx context.Context) (changed, added []string, err error) {
	unchanged := func(name string) bool { return folder.Excluded(name, 0) || inPlace(p.Root, name) }
	leftOut := func(name string) bool { // by a sparse checkout
		_, err := os.Lstat(filepath.Join(p.Root, filepath.FromSlash(name)))
		return errors.Is(err, fs.ErrNotExist) || unchanged(name)
	}
	if changed, err = differing(ctx, p.copied, p.commit); err != nil {
		return nil, nil, err
	}
	added, err = list(ctx, p.copied, "ls-files", "--others", "--exclude-standard")
	if p.Patch != "" && !slices.Contains(added, p.Patch) { // git may be told to ignore such files
		if _, err := os.Lstat(p.file(p.Patch)); err == nil {
			added = append(added, p.Patch)
		}
	}
	return slices.DeleteFunc(changed, leftOut), slices.DeleteFunc(added, unchanged), err
}

// An undoLog says how to undo a bump of which some files may be in place.
type undoLog struct {
	Title   string   `json:"title"`   // of the bump
	Commit  string   `json:"commit"`  // of the tree
	Changed []string `json:"changed"` // files of the commit that the bump changes or removes
	Added   []string `json:"added"`
}

// apply puts the files of the copy into the tree. If that fails, they are undone.
func (p *preparation) apply(ctx context.Context, u undoLog) error {
	edited, err := changesSince(ctx, p.repo, p.own, p.commit)
	if err != nil {
		return err
	}
	for _, name := range u.Changed {
		if slices.Contains(edited, name) {
			return fmt.Errorf("%s was edited while the bump was prepared, and nothing was changed: try again", name)
		}
	}
	for _, name := range u.Added {
		if _, err := os.Lstat(filepath.Join(p.Root, filepath.FromSlash(name))); err == nil {
			return fmt.Errorf("the bump adds %s, and the tree has a file of this name that git does not track: nothing was changed", name)
		}
	}
	if err := u.write(p.Root); err != nil {
		return err
	}
	for _, name := range slices.Concat(u.Changed, u.Added) {
		if err := place(p.Root, name); err != nil {
			if _, undoErr := u.undo(context.WithoutCancel(ctx), p.Root, p.repo); undoErr != nil {
				return errors.Join(err, undoErr)
			}
			return fmt.Errorf("%w; nothing was changed", err)
		}
	}
	return os.Remove(undoFile(p.Root))
}

func (u undoLog) write(root string) error {
	data, err := json.MarshalIndent(u, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(undoFile(root), append(data, '\n'), 0o666)
}

// place gives a file of the tree the content that it has in the copy, or removes it.
func place(root, name string) error {
	from, to := filepath.Join(copyDir(root), filepath.FromSlash(name)), filepath.Join(root, filepath.FromSlash(name))
	whole := filepath.Join(workDir(root), "whole") // in _output, where git ignores what a kill leaves
	err := atomicfile.Copy(from, whole)
	if errors.Is(err, fs.ErrNotExist) {
		return remove(root, to)
	}
	if err != nil {
		return err
	}
	return move(whole, to)
}

// remove removes a file of the tree, and the folders that are empty then, as git does.
func remove(root, file string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	for dir := filepath.Dir(file); dir != root && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

// move renames a file into the tree. _output may be on another disk.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		return atomicfile.Copy(from, to)
	}
	return err
}

// inPlace reports whether a file is in the tree as it is in the copy, or in neither of them.
func inPlace(root, name string) bool {
	old, oldErr := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	new, newErr := os.ReadFile(filepath.Join(copyDir(root), filepath.FromSlash(name)))
	return bytes.Equal(old, new) && errors.Is(oldErr, fs.ErrNotExist) == errors.Is(newErr, fs.ErrNotExist)
}

// undo gives the files that the bump has put in place the content of the commit. All other files stay as they are: those that were edited
// since, which it returns, and those that were committed since. If undo is interrupted, it can run again.
func (u undoLog) undo(ctx context.Context, root string, repo *worktree.Repo) (edited []string, err error) {
	now, err := withIndex(ctx, repo, "head", "HEAD")
	if err != nil {
		return nil, err
	}
	tracked, err := list(ctx, now, "ls-files")
	if err != nil {
		return nil, err
	}
	differ, err := differing(ctx, now, "HEAD")
	if err != nil {
		return nil, err
	}
	var restore []string
	for _, name := range slices.Concat(u.Changed, u.Added) {
		file := filepath.Join(root, filepath.FromSlash(name))
		_, missing := os.Lstat(file)
		committed := missing != nil
		if slices.Contains(tracked, name) {
			committed = !slices.Contains(differ, name)
		}
		switch {
		case committed:
		case !inPlace(root, name):
			edited = append(edited, name)
		case slices.Contains(u.Changed, name):
			restore = append(restore, name)
		default:
			if err := remove(root, file); err != nil {
				return nil, err
			}
		}
	}
	if err := u.restore(ctx, root, repo, restore); err != nil {
		return nil, err
	}
	return edited, errors.Join(os.Remove(undoFile(root)), os.RemoveAll(workDir(root)))
}

// restore gives files the content of the commit, each at once. It does not touch the user's index.
func (u undoLog) restore(ctx context.Context, root string, repo *worktree.Repo, names []string) error {
	if len(names) == 0 {
		return nil
	}
	old := filepath.Join(workDir(root), "old")
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	own, err := withIndex(ctx, repo, "index", u.Commit)
	if err != nil {
		return err
	}
	_, err = own.Run(ctx, strings.NewReader(strings.Join(names, "\x00")), "checkout-index", "-z", "--stdin", "--prefix="+old+"/")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := move(filepath.Join(old, filepath.FromSlash(name)), filepath.Join(root, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// Pending reports whether a bump of the tree at root was killed while it put files in place.
func Pending(root string) bool {
	_, err := os.Stat(undoFile(root))
	return err == nil
}

// Recover undoes a bump that was killed while it put files in place. It returns the bump's title, such as "Kubernetes v1.36.4", or "" if
// there was none, and the files that stay since they were edited.
func Recover(ctx context.Context, root string, env func(string) string) (title string, edited []string, err error) {
	data, err := os.ReadFile(undoFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	var u undoLog
	if err := json.Unmarshal(data, &u); err != nil {
		return "", nil, fmt.Errorf("%s is damaged; compare the tree with the last commit, and remove the file: %w", undoFile(root), err)
	}
	repo, err := open(root, env)
	if err != nil {
		return "", nil, err
	}
	edited, err = u.undo(ctx, root, repo)
	return u.Title, edited, err
}
