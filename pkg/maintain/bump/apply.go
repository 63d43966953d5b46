package bump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	dirty, err := differing(ctx, repo, p.commit)
	if err != nil {
		return err
	}
	if len(dirty) > 0 {
		more := ""
		if len(dirty) > 3 {
			more = fmt.Sprintf(" and %d more", len(dirty)-3)
		}
		return fmt.Errorf("changes to %s%s are not committed: commit or stash them first", strings.Join(dirty[:min(3, len(dirty))], ", "), more)
	}
	if err := errors.Join(os.RemoveAll(workDir(p.Root)), os.MkdirAll(copyDir(p.Root), 0o777)); err != nil {
		return err
	}
	// The copy has an index of its own, since flags in the user's may hide changes.
	p.repo, p.copied = repo, repo.With("GIT_WORK_TREE="+copyDir(p.Root), "GIT_INDEX_FILE="+filepath.Join(workDir(p.Root), "index"))
	if _, err := p.copied.Run(ctx, nil, "read-tree", p.commit); err != nil {
		return err
	}
	names, err := list(ctx, p.copied, "ls-files")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(p.Root, filepath.FromSlash(name)), p.file(name)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// copyFile copies a file or a link. In a sparse checkout, files are missing.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o777)); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return atomicfile.Copy(from, to)
	}
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	return os.Symlink(target, to)
}

// changes lists the files that the bump changes or removes, and those that it adds.
func (p *preparation) changes(ctx context.Context) (changed, added []string, err error) {
	unchanged := func(name string) bool { return folder.Excluded(name, 0) || inPlace(p.Root, name) }
	if changed, err = differing(ctx, p.copied, p.commit); err != nil {
		return nil, nil, err
	}
	added, err = list(ctx, p.copied, "ls-files", "--others", "--exclude-standard")
	return slices.DeleteFunc(changed, unchanged), slices.DeleteFunc(added, unchanged), err
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
	edited, err := differing(ctx, p.repo, p.commit)
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
			if undoErr := u.undo(context.WithoutCancel(ctx), p.Root, p.repo); undoErr != nil {
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
	whole := filepath.Join(workDir(root), "whole") // beside the tree, where a kill leaves it unseen
	err := atomicfile.Copy(from, whole)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(to)
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o777)); err != nil {
		return err
	}
	return os.Rename(whole, to)
}

// inPlace reports whether a file is in the tree as it is in the copy, or in neither of them.
func inPlace(root, name string) bool {
	old, oldErr := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	new, newErr := os.ReadFile(filepath.Join(copyDir(root), filepath.FromSlash(name)))
	return bytes.Equal(old, new) && errors.Is(oldErr, fs.ErrNotExist) == errors.Is(newErr, fs.ErrNotExist)
}

// undo gives the files that the bump has put in place the content of the commit. All other files stay as they are, also those that were
// edited since. If undo is interrupted, it can run again.
func (u undoLog) undo(ctx context.Context, root string, repo *worktree.Repo) error {
	untouched := func(name string) bool { return !inPlace(root, name) }
	for _, name := range slices.DeleteFunc(slices.Clone(u.Added), untouched) {
		if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if changed := slices.DeleteFunc(slices.Clone(u.Changed), untouched); len(changed) > 0 {
		if _, err := repo.Run(ctx, strings.NewReader(strings.Join(changed, "\x00")), "restore", "--source="+u.Commit, "--worktree",
			"--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(undoFile(root)), os.RemoveAll(workDir(root)))
}

// Pending reports whether a bump of the tree at root was killed while it put files in place.
func Pending(root string) bool {
	_, err := os.Stat(undoFile(root))
	return err == nil
}

// Recover undoes such a bump, and returns what it was, such as "Kubernetes v1.36.4". Without one, it does nothing and returns "".
func Recover(ctx context.Context, root string, env func(string) string) (title string, err error) {
	data, err := os.ReadFile(undoFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var u undoLog
	if err := json.Unmarshal(data, &u); err != nil {
		return "", fmt.Errorf("%s is damaged; compare the tree with the last commit, and remove the file: %w", undoFile(root), err)
	}
	repo, err := open(root, env)
	if err != nil {
		return "", err
	}
	return u.Title, u.undo(ctx, root, repo)
}
