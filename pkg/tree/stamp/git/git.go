package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNone means that a folder is not the top of a git work tree.
var ErrNone = errors.New("not the top of a git work tree")

// A Repo is a repository with its work tree at Root.
type Repo struct {
	Root string // absolute, without symbolic links

	exe string
	env []string
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
	// A linked work tree and a submodule have a file there, all others a folder.
	_, err = os.Lstat(filepath.Join(top, ".git"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	exe, err := find("git", env("PATH"))
	if err != nil {
		return nil, err
	}
	r := &Repo{Root: top, exe: exe, env: []string{
		"LC_ALL=C",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		// Together, these two guarantee that git uses this work tree's repository, even if .git is empty or its
		// configuration names another work tree. GIT_DIR would do so, too, but it turns off git's check of the owner.
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(top),
		"GIT_WORK_TREE=" + top,
	}}
	for _, key := range inherited {
		if value := env(key); value != "" {
			r.env = append(r.env, key+"="+value)
		}
	}
	return r, nil
}

// find finds a program in path, a list of folders.
func find(program, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if exe, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return exe, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH; it is needed to read a git work tree", program)
}

// Run runs a git command in Root and returns its output. Input may be nil.
func (r *Repo) Run(ctx context.Context, input io.Reader, args ...string) ([]byte, error) {
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, r.exe, append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.Env = r.Root, r.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &problem
	cmd.WaitDelay = 5 * time.Second // for a filter of git that keeps the pipe open
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	text := strings.TrimSpace(problem.String())
	if strings.Contains(text, "dubious ownership") || strings.Contains(text, "unsafe repository") {
		return nil, fmt.Errorf("git %s: the work tree belongs to another user; if you trust it, run: "+
			"git config --global --add safe.directory '%s'", args[0], r.Root)
	}
	if text == "" {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil, fmt.Errorf("git %s: %w: %s", args[0], err, text)
}
