package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/git"
)

func repo(t *testing.T) *git.Repo {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := git.At(dir)
	if err == nil {
		err = r.Init(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, r *git.Repo, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCommitDependsOnFilesAlone is not parallel, because it sets the user's environment.
func TestCommitDependsOnFilesAlone(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	config := "[user]\n\tname = Me\n\temail = me@example.org\n[core]\n\tautocrlf = input\n[commit]\n\tgpgSign = true\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_DIR", home)
	r := repo(t)
	write(t, r, "windows.txt", "one\r\ntwo\r\n")
	write(t, r, ".gitattributes", "* text=auto eol=lf\n")
	write(t, r, ".gitignore", "ignored\n")
	write(t, r, "ignored", "it counts\n")
	id, err := r.Commit(t.Context(), "Everything\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "1ee637466bfb5ca63287e86a08371cb8f7ca9a47"; id != want {
		t.Errorf("commit %s, want %s", id, want)
	}
	if got, err := r.Line(t.Context(), "cat-file", "blob", "HEAD:windows.txt"); err != nil || got != "one\r\ntwo\r" {
		t.Errorf("windows.txt is %q, %v", got, err)
	}
	if got, err := r.Line(t.Context(), "status", "--porcelain", "--ignored"); err != nil || got != "" {
		t.Errorf("status: %q, %v", got, err)
	}
}

func TestOuterRepositoryIsNotTaken(t *testing.T) {
	t.Parallel()
	outer := repo(t)
	inner, err := git.At(filepath.Join(outer.Dir, "inner"))
	if err == nil {
		err = os.Mkdir(inner.Dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = inner.Run(t.Context(), "status")
	if err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("got %v", err)
	}
}

// A commit by the user's own git starts no maintenance in the background.
func TestUsersCommitStartsNoMaintenance(t *testing.T) {
	t.Parallel()
	r := repo(t)
	trace := filepath.Join(t.TempDir(), "trace")
	users, err := git.Open(r.Dir, "PATH="+os.Getenv("PATH"), "GIT_TRACE="+trace, "GIT_AUTHOR_NAME=Kim", "GIT_COMMITTER_NAME=Kim",
		"EMAIL=kim@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	write(t, users, "file", "text\n")
	if _, err := users.Commit(t.Context(), "First\n"); err != nil {
		t.Fatal(err)
	}
	commands, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(commands), "git commit") || strings.Contains(string(commands), "maintenance run") {
		t.Errorf("%v, commands:\n%s", err, commands)
	}
}

func TestCanceledGitRemovesItsLocks(t *testing.T) {
	t.Parallel()
	r := repo(t)
	id, err := r.Commit(t.Context(), "First\n")
	if err == nil {
		_, err = r.Commit(t.Context(), "Second\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	input, commands, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	defer commands.Close()
	if _, err := commands.WriteString("start\nupdate refs/heads/main " + id + "\nprepare\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Feed(ctx, input, "update-ref", "--stdin")
		ended <- err
	}()
	lock := filepath.Join(r.Dir, ".git", "refs", "heads", "main.lock")
	for { // git knows of its own lock shortly after the file is there, and before it writes to it
		if info, err := os.Lstat(lock); err == nil && info.Size() > 0 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("git took no lock: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is still there: %v", err)
	}
}
