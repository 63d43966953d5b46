package worktree

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides which files are sources.
var _ = recipe.Of("tree/worktree", sources)

// ErrNone means that a folder is not the top of a git work tree.
var ErrNone = errors.New("not the top of a git work tree")

// A Repo is a repository with its work tree at Root.
type Repo struct {
	Root string // absolute, without symbolic links

	git   *git.Repo
	mu    sync.Mutex
	state *State // that State returned
}

// An Opener opens a repository, or returns [ErrNone].
type Opener func() (*Repo, error)

// Once returns an Opener that opens the repository when it is first called, and then returns that one at every call. Its State is
// found once, so all that share the Opener see the work tree as it was at one moment.
func Once(root string, env func(string) string) Opener {
	return sync.OnceValues(func() (*Repo, error) { return Open(root, env) })
}

// inherited lists the caller's variables that git gets.
var inherited = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "SUDO_UID", "TMPDIR", "SYSTEMROOT", "USERPROFILE"}

// Open returns the repository whose work tree begins at root, or ErrNone. It starts no process. A nil env means os.Getenv.
func Open(root string, env func(string) string) (*Repo, error) {
	if env == nil {
		env = os.Getenv
	}
	top, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return nil, err
	}
	// A linked work tree and a submodule have a file there, any other a folder.
	_, err = os.Lstat(filepath.Join(top, ".git"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	vars := []string{
		"GIT_OPTIONAL_LOCKS=0",
		// With git.Open's ceiling, this guarantees that git uses this work tree's repository, even if .git is empty or its
		// configuration names another work tree. GIT_DIR would do so, too, but it turns off git's check of the owner.
		"GIT_WORK_TREE=" + top,
	}
	for _, key := range inherited {
		if value := env(key); value != "" {
			vars = append(vars, key+"="+value)
		}
	}
	repo, err := git.Open(top, vars...)
	if err != nil {
		return nil, fmt.Errorf("read the work tree %s: %w", top, err)
	}
	return &Repo{Root: top, git: repo}, nil
}

// With returns the repository with more variables in git's environment, which go before others of the same name.
func (r *Repo) With(env ...string) *Repo { return &Repo{Root: r.Root, git: r.git.With(env...)} }

// Run runs a git command in Root and returns its output. Input may be nil.
func (r *Repo) Run(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	out, err := r.git.Feed(ctx, input, args...)
	failed := new(git.Error)
	if errors.As(err, &failed) && (strings.Contains(failed.Problem, "dubious ownership") ||
		strings.Contains(failed.Problem, "unsafe repository")) {
		return nil, fmt.Errorf("git %s: the work tree belongs to another user; if you trust it, run: "+
			"git config --global --add safe.directory '%s'", args[0], r.Root)
	}
	return out, err
}
