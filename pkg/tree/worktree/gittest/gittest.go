// Package gittest makes real git repositories for tests, with fixed authors and times, so that their hashes are the same
// in each run. Only tests may import it.
package gittest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/needs"
)

// Time is the time of a first commit in a Repo. Each further commit is a minute later.
var Time = time.Date(2026, 11, 20, 23, 53, 0, 0, time.UTC)

// A Repo is a git work tree in a temporary folder.
type Repo struct {
	Dir string

	t       testing.TB
	home    string
	commits int
}

// New makes an empty repository. A test on a machine without git is skipped, or fails, as package needs says.
func New(t testing.TB) *Repo {
	t.Helper()
	needs.Program(t, "git")
	r := &Repo{Dir: filepath.Join(t.TempDir(), "tree"), t: t, home: t.TempDir()}
	mkdir(t, r.Dir)
	r.Git("init", "-q", "-b", "main")
	return r
}

// At returns the repository in dir, with r's home.
func (r *Repo) At(dir string) *Repo {
	return &Repo{Dir: dir, t: r.t, home: r.home, commits: r.commits}
}

// Clone clones r with git clone's options.
func (r *Repo) Clone(options ...string) *Repo {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "clone")
	r.Git(append(append([]string{"clone", "-q"}, options...), "file://"+r.Dir, dir)...)
	return r.At(dir)
}

// Env returns an environment for the code under test: the process's PATH, an empty HOME, and the pairs of set.
func (r *Repo) Env(set ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(set); i += 2 {
			if set[i] == key {
				return set[i+1]
			}
		}
		switch key {
		case "PATH":
			return os.Getenv("PATH")
		case "HOME":
			return r.home
		}
		return ""
	}
}

// Write writes a file, and makes the folders above it.
func (r *Repo) Write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, name)
	mkdir(r.t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits all files.
func (r *Repo) Commit() {
	r.t.Helper()
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", "a change")
	r.commits++
}

// Git runs git and returns its output without surrounding space.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	now := Time.Add(time.Duration(r.commits) * time.Minute).Format(time.RFC3339)
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=" + now,
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=" + now,
	}
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, problem.String())
	}
	return strings.TrimSpace(out.String())
}

func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}
