package lines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/tree/worktree"
)

// Folder has the lines' work trees, relative to a tree's root. The branches' names begin with prefix.
const (
	Folder = "_output/lines"
	prefix = "lines/"
)

// State is a folder for the lock of commands on lines, relative to a tree's root, and for marks. No line's name begins with a dot.
const State = Folder + "/.state"

// ofTree is the pathspec of what belongs to a tree: not what is made of it.
var ofTree = []string{"--", ".", ":(exclude)_output"}

// A Work is a line's work tree.
type Work struct {
	Line       *Line
	Dir        string
	Branch     string // has the commits
	Waiting    int    // commits on Branch that the line does not have
	Unfinished bool   // files in Dir are changed and not committed, by a person or for one
	Note       string // about another work tree of the line's branch

	repo *worktree.Repo
}

// An UnfinishedError says that a line cannot be changed before a person has finished something.
type UnfinishedError struct {
	Dir string
	Why string
}

// Commits reports whether it is commits that are on no branch, and not changes.
func (e *UnfinishedError) Commits() bool { return e.Why == noBranch }

func (e *UnfinishedError) Error() string { return e.Why }

// path returns a file that the list of lines names.
func (l *Line) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.root, filepath.FromSlash(name))
}

// ReleaseFolder returns the folder of the line's last release, or "".
func (l *Line) ReleaseFolder() string {
	if l.Release == "" {
		return ""
	}
	return l.path(l.Release)
}

// line runs git in the line's repository and returns the output without the line end.
func (l *Line) line(ctx context.Context, args ...string) (string, error) {
	return line(ctx, l.repo, args...)
}

func line(ctx context.Context, repo *worktree.Repo, args ...string) (string, error) {
	out, err := repo.Run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// Open makes the line's work tree, or brings it to where the line is. If something is to be changed there, it must be possible, and Done
// or Commit ends the change. The caller holds the lock in [State].
func (l *Line) Open(ctx context.Context, change bool) (*Work, error) {
	w := &Work{Line: l, Dir: filepath.Join(l.root, filepath.FromSlash(Folder), l.Name), Branch: prefix + l.Name}
	if err := w.lay(ctx); err != nil {
		return nil, err
	}
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	start, why, err := w.start(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case why == "" && w.Unfinished:
		why = notCommitted
	case why == "":
		head, err := line(ctx, w.repo, "rev-parse", "HEAD")
		if err == nil && head != start {
			_, err = w.repo.Run(ctx, nil, "checkout", "--quiet", "--detach", start)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.link(ctx); err != nil {
		return nil, err
	}
	if !change {
		return w, nil
	}
	if why != "" {
		return w, &UnfinishedError{w.Dir, why}
	}
	return w, os.WriteFile(w.mark(), nil, 0o666)
}

// mark is the file that says that a command changes the work tree. It holds making while a command makes it.
func (w *Work) mark() string {
	return filepath.Join(w.Line.root, filepath.FromSlash(State), w.Line.Name)
}

const making = "making\n"

// lay makes the work tree if there is none, and throws away what a killed command has left in it.
func (w *Work) lay(ctx context.Context) (err error) {
	if err := os.MkdirAll(filepath.Dir(w.mark()), 0o777); err != nil {
		return err
	}
	mark, err := os.ReadFile(w.mark())
	killed, half := err == nil, string(mark) == making
	if w.repo, err = worktree.Open(w.Dir, w.Line.getenv); err == nil && w.ours(ctx) {
		if !killed {
			return nil
		}
		err := w.reset(ctx)
		if err == nil {
			return os.Remove(w.mark())
		}
		if !half || ctx.Err() != nil { // below _output, or in commits, there may be somebody's work
			return fmt.Errorf("throw away what a killed command has left in %s: %w", w.Dir, err)
		}
	}
	// What is there is not a work tree, or half of one: nobody has worked in that.
	if _, err := os.Lstat(w.Dir); err == nil && !half {
		return fmt.Errorf("%s is in the place of the line's work tree: move it away", w.Dir)
	}
	if err := os.WriteFile(w.mark(), []byte(making), 0o666); err != nil {
		return err
	}
	if err := os.RemoveAll(w.Dir); err != nil {
		return err
	}
	if _, err := w.Line.repo.Run(ctx, nil, "worktree", "prune"); err != nil {
		return err
	}
	if _, err := w.Line.repo.Run(ctx, nil, "worktree", "add", "--force", "--quiet", "--detach", w.Dir, w.Line.base); err != nil {
		return err
	}
	if w.repo, err = worktree.Open(w.Dir, w.Line.getenv); err != nil {
		return err
	}
	return os.Remove(w.mark())
}

// ours reports whether the work tree is one of the line's repository.
func (w *Work) ours(ctx context.Context) bool {
	here, err := line(ctx, w.repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
	there, err2 := w.Line.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	return err == nil && err2 == nil && here == there
}

// reset throws away what is not committed.
func (w *Work) reset(ctx context.Context) error {
	lock, err := line(ctx, w.repo, "rev-parse", "--path-format=absolute", "--git-path", "index.lock")
	if err != nil {
		return err
	}
	if err := os.Remove(lock); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := w.repo.Run(ctx, nil, "reset", "--quiet", "--hard"); err != nil {
		return err
	}
	_, err = w.repo.Run(ctx, nil, "clean", "-ffdq", "--exclude=/_output")
	return err
}

// look finds what is not committed, here and in another work tree of the line's branch.
func (w *Work) look(ctx context.Context) error {
	var err error
	if w.Unfinished, err = changed(ctx, w.repo); err != nil {
		return err
	}
	other := w.Line.repo
	if w.Line.Branch != "" {
		dir, err := w.checkedOut(ctx, w.Line.Branch)
		if err != nil || dir == "" {
			return err
		}
		if other, err = worktree.Open(dir, w.Line.getenv); err != nil {
			return nil // git remembers a folder that is gone
		}
	}
	edited, err := changed(ctx, other)
	if edited {
		w.Note = other.Root + " has changes that are not committed: they are not looked at"
	}
	return err
}

// changed reports whether files of a work tree are not as its commit has them.
func changed(ctx context.Context, repo *worktree.Repo) (bool, error) {
	out, err := repo.Run(ctx, nil, append([]string{"status", "--porcelain", "--untracked-files=normal"}, ofTree...)...)
	return len(out) > 0, err
}

// checkedOut returns the folder of the work tree that has a branch, or "".
func (w *Work) checkedOut(ctx context.Context, branch string) (string, error) {
	out, err := w.Line.repo.Run(ctx, nil, "worktree", "list", "--porcelain")
	if err != nil {
		return "", err
	}
	for tree := range strings.SplitSeq(string(out), "\n\n") {
		lines := strings.Split(tree, "\n")
		if slices.Contains(lines, "branch refs/heads/"+branch) {
			return strings.TrimPrefix(lines[0], "worktree "), nil
		}
	}
	return "", nil
}

// start returns the commit to begin at, or why there is none: that of the line or, if it has not been taken, the last one on Branch.
func (w *Work) start(ctx context.Context) (commit, why string, err error) {
	base := w.Line.base
	tip, err := w.Line.line(ctx, "for-each-ref", "--format=%(objectname)", "refs/heads/"+w.Branch)
	if err != nil {
		return "", "", err
	}
	if tip != "" {
		if w.Waiting, err = w.count(ctx, base+".."+tip); err != nil {
			return "", "", err
		}
	}
	start := base
	if w.Waiting > 0 {
		start = tip
		behind, err := w.count(ctx, tip+".."+base)
		if err != nil {
			return "", "", err
		}
		if behind > 0 {
			return "", fmt.Sprintf("the line has moved since the commits on %s: merge, rebase or delete that branch", w.Branch), nil
		}
	}
	// Commits that a person made here are on Branch, unless they were made before there was one.
	if lost, err := onNoBranch(ctx, w.repo, base); err != nil || lost {
		return "", noBranch, err
	}
	if dir, err := w.checkedOut(ctx, w.Branch); err != nil || dir != "" && !same(dir, w.Dir) {
		return "", fmt.Sprintf("branch %s is checked out in %s: switch that to another one", w.Branch, dir), err
	}
	return start, "", nil
}

const (
	noBranch     = "it has commits that are on no branch"
	notCommitted = "it has changes that are not committed"
)

// onNoBranch reports whether a work tree has commits that go with it: that no branch has, no tag, and no other commit.
func onNoBranch(ctx context.Context, repo *worktree.Repo, others ...string) (bool, error) {
	args := append([]string{"rev-list", "--count", "HEAD", "--not", "--branches", "--tags", "--remotes"}, others...)
	n, err := line(ctx, repo, args...)
	return n != "0", err
}

// headsOutside returns the commits that work trees of a repository are at, without those in a folder.
func headsOutside(ctx context.Context, repo *worktree.Repo, folder string) ([]string, error) {
	out, err := repo.Run(ctx, nil, "worktree", "list", "--porcelain")
	var heads []string
	for tree := range strings.SplitSeq(string(out), "\n\n") {
		at, rest, _ := strings.Cut(tree, "\n")
		head, _, _ := strings.Cut(rest, "\n")
		commit, ok := strings.CutPrefix(head, "HEAD ")
		if ok && strings.Trim(commit, "0") != "" && !strings.Contains(rest, "\nprunable") &&
			!same(filepath.Dir(strings.TrimPrefix(at, "worktree ")), folder) {
			heads = append(heads, commit)
		}
	}
	return heads, err
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

func (w *Work) count(ctx context.Context, commits string) (int, error) {
	n, err := w.Line.line(ctx, "rev-list", "--count", commits, "--")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(n)
}

// identity lists the variables that say who commits, and with which key.
var identity = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_CONFIG_GLOBAL", "GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK",
}

// Commit commits what was changed on the line's Branch, by the user's name, and reports whether there was something.
func (w *Work) Commit(ctx context.Context, message string) (bool, error) {
	if edited, err := changed(ctx, w.repo); err != nil || !edited {
		return false, err
	}
	if err := w.attach(ctx); err != nil {
		return false, err
	}
	// git add refuses to leave out what git ignores.
	list := []string{"ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"}
	files, err := w.repo.Run(ctx, nil, append(list, ofTree...)...)
	if err != nil {
		return false, err
	}
	if _, err := w.repo.Run(ctx, bytes.NewReader(files), "update-index", "-z", "--add", "--remove", "--stdin"); err != nil {
		return false, err
	}
	var user []string
	for _, key := range identity {
		if value := w.Line.getenv(key); value != "" {
			user = append(user, key+"="+value)
		}
	}
	if _, err := w.repo.With(user...).Run(ctx, strings.NewReader(message), "commit", "--quiet", "--file=-"); err != nil {
		return false, err
	}
	w.Waiting++
	return true, nil
}

// attach makes the line's Branch what is checked out, so that the next commit here is on it.
func (w *Work) attach(ctx context.Context) error {
	_, err := w.repo.Run(ctx, nil, "checkout", "--quiet", "-B", w.Branch)
	return err
}

// Leave ends a change, and leaves what is not committed for a person to finish.
func (w *Work) Leave(ctx context.Context) error {
	if err := w.attach(ctx); err != nil {
		return err
	}
	w.Unfinished = true
	return os.Remove(w.mark())
}

// Done ends a change, and throws away what is not committed. After [Work.Leave] it does nothing.
func (w *Work) Done(ctx context.Context) error {
	if w.Unfinished {
		return nil
	}
	if err := w.reset(ctx); err != nil {
		return err
	}
	return os.Remove(w.mark())
}

// Folders returns the folders of the lines' work trees below root.
func Folders(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(Folder)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != filepath.Base(State) {
			dirs = append(dirs, filepath.Join(root, filepath.FromSlash(Folder), e.Name()))
		}
	}
	return dirs, nil
}

// Unfinished returns what would be lost with the work trees below root: changes that are not committed, and commits that are on no branch.
func Unfinished(ctx context.Context, root string, getenv func(string) string) ([]*UnfinishedError, error) {
	dirs, err := Folders(root)
	if err != nil {
		return nil, err
	}
	var found []*UnfinishedError
	for _, dir := range dirs {
		repo, err := worktree.Open(dir, getenv)
		if errors.Is(err, worktree.ErrNone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		heads, err := headsOutside(ctx, repo, filepath.Dir(dir))
		if err != nil {
			return nil, err
		}
		if lost, err := onNoBranch(ctx, repo, heads...); err != nil {
			return nil, err
		} else if lost {
			found = append(found, &UnfinishedError{dir, noBranch})
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(State), filepath.Base(dir))); err == nil {
			continue // changes are of a killed command
		}
		if edited, err := changed(ctx, repo); err != nil {
			return nil, err
		} else if edited {
			found = append(found, &UnfinishedError{dir, notCommitted})
		}
	}
	return found, nil
}
