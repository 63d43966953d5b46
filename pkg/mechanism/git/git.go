// Package git runs git, in an environment that is made here: it takes no variable of the caller's that is not named, uses no
// repository above the one that is asked for, speaks English, never asks for anything, and starts no file system monitor.
//
// [At] is for repositories that slipway makes. There, the same commands make the same commits on every machine: neither the system's
// nor the user's configuration counts, since a template folder, a hook, a signature or another way to write diffs would change what
// git makes. Line ends stay as they are, whatever .gitattributes says. Commits that [Repo.Commit] makes have a fixed author and time,
// so their IDs depend on the files alone. Git starts no maintenance in the background.
//
// [Open] is for repositories of others. The caller decides what of the environment, and so of the configuration, counts.
//
// What must never be in here: what the repositories hold, and whose they are.
package git

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides what git says of sources.
var _ = recipe.Of("mechanism/git", sources)

// A Repo is a repository with its work tree.
type Repo struct {
	Dir string // absolute

	exe     string
	options []string // before each command
	env     []string
}

// Email is the address of the author and committer of commits in repositories that slipway makes, if [Repo.With] names no other.
const Email = "slipway@localhost"

// inherited lists the caller's variables that git gets in repositories that slipway makes. Without HOME it does not find the user's
// lists of ignored files and of attributes.
var inherited = []string{"PATH", "SUDO_UID", "TMPDIR", "SYSTEMROOT"}

// fixed is the environment that is the same for everybody.
var fixed = []string{
	"TZ=UTC",
	"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
	"GIT_EDITOR=:",
	"GIT_AUTHOR_NAME=slipway", "GIT_AUTHOR_EMAIL=" + Email, "GIT_AUTHOR_DATE=@0 +0000",
	"GIT_COMMITTER_NAME=slipway", "GIT_COMMITTER_EMAIL=" + Email, "GIT_COMMITTER_DATE=@0 +0000",
}

// settings go before a repository's own configuration.
var settings = []string{
	"-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.hooksPath=" + os.DevNull,
	"-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.mergeConflict=false",
}

// At returns the repository at dir that slipway makes or has made. It may not exist yet.
func At(dir string) (*Repo, error) {
	env := fixed
	for _, key := range inherited {
		if value, ok := os.LookupEnv(key); ok {
			env = append(slices.Clip(env), key+"="+value)
		}
	}
	r, err := Open(dir, env...)
	if err != nil {
		return nil, err
	}
	r.options = append(r.options, settings...)
	return r, nil
}

// Open returns the repository at dir. Git, which is found in PATH of env, gets env and what package git always sets.
func Open(dir string, env ...string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{Dir: dir, options: []string{"-c", "core.fsmonitor=false"}, env: append([]string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), // a repository above dir is another one
	}, env...)}
	if r.exe, err = find(env); err != nil {
		return nil, err
	}
	return r, nil
}

// find finds git in PATH of an environment.
func find(env []string) (string, error) {
	for _, variable := range env {
		path, ok := strings.CutPrefix(variable, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if exe, err := exec.LookPath(filepath.Join(dir, "git")); err == nil {
				return exe, nil
			}
		}
	}
	return "", errors.New("git is not in PATH: install it")
}

// With returns the repository with more variables in git's environment, which go before others of the same name.
func (r *Repo) With(env ...string) *Repo {
	with := *r
	with.env = append(slices.Clip(r.env), env...)
	return &with
}

// Init makes an empty repository in the folder, which must exist. Its files are kept as they are: no line end is changed. Init
// also turns off background maintenance for the user's git, since it would write into a folder that slipway removes or moves.
func (r *Repo) Init(ctx context.Context) error {
	if _, err := r.Run(ctx, "init", "--quiet", "--initial-branch=main", "--template="); err != nil {
		return err
	}
	for _, setting := range [][2]string{{"gc.auto", "0"}, {"maintenance.auto", "false"}} {
		if _, err := r.Run(ctx, "config", setting[0], setting[1]); err != nil {
			return err
		}
	}
	info := filepath.Join(r.Dir, ".git", "info")
	if err := os.MkdirAll(info, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text -ident -filter -working-tree-encoding\n"), 0o666)
}

// Commit commits everything in the work tree, also what .gitignore names, and returns the commit's ID. It depends on the files,
// the parent and the message alone.
func (r *Repo) Commit(ctx context.Context, message string) (string, error) {
	if _, err := r.Run(ctx, "add", "--all", "--force"); err != nil {
		return "", err
	}
	if _, err := r.Run(ctx, "commit", "--quiet", "--allow-empty", "--no-verify", "--cleanup=verbatim", "--message="+message); err != nil {
		return "", err
	}
	return r.Line(ctx, "rev-parse", "HEAD")
}

// Line runs git and returns its output without the line end.
func (r *Repo) Line(ctx context.Context, args ...string) (string, error) {
	out, err := r.Run(ctx, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// Run runs git and returns its output.
func (r *Repo) Run(ctx context.Context, args ...string) ([]byte, error) {
	return r.Feed(ctx, nil, args...)
}

// Feed runs git with standard input and returns its output.
func (r *Repo) Feed(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, r.exe, append(slices.Clip(r.options), args...)...)
	cmd.Dir, cmd.Env = r.Dir, r.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &problem
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // git removes its lock files
	cmd.WaitDelay = 5 * time.Second                                          // for a filter of git that keeps the pipe open
	err := child.Run(cmd, syscall.SIGTERM, nil)
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git %s in %s: %w", args[0], r.Dir, context.Cause(ctx))
	}
	return nil, &Error{Command: args[0], Dir: r.Dir, Problem: strings.TrimSpace(problem.String()), err: err}
}

// An Error is a git command that failed.
type Error struct {
	Command string // "am"
	Dir     string
	Problem string // what it printed on standard error

	err error
}

func (e *Error) Error() string {
	text := fmt.Sprintf("git %s in %s: %v", e.Command, e.Dir, e.err)
	if e.Problem != "" {
		text += ": " + e.Problem
	}
	return text
}

func (e *Error) Unwrap() error { return e.err }
