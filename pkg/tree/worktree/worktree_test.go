package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/statcache"
	"slipway.build/pkg/tree/worktree/gittest"
)

func TestStateSeesEveryKindOfChange(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, r *gittest.Repo)
		dirty  bool
	}{
		{"nothing", func(*testing.T, *gittest.Repo) {}, false},
		{"touched", func(t *testing.T, r *gittest.Repo) {
			later := gittest.Time.AddDate(1, 0, 0)
			if err := os.Chtimes(filepath.Join(r.Dir, "a.go"), later, later); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"ignored file", func(_ *testing.T, r *gittest.Repo) { r.Write("_output/bin/x", "x") }, false},
		{"changed", func(_ *testing.T, r *gittest.Repo) { r.Write("a.go", "package b\n") }, true},
		{"staged", func(_ *testing.T, r *gittest.Repo) { r.Write("a.go", "package b\n"); r.Git("add", "a.go") }, true},
		{"untracked file", func(_ *testing.T, r *gittest.Repo) { r.Write("new.go", "package a\n") }, true},
		{"untracked file, and a configuration that hides it", func(_ *testing.T, r *gittest.Repo) {
			r.Write("new.go", "package a\n")
			r.Git("config", "--global", "status.showUntrackedFiles", "no")
		}, true},
		{"a file that git ignores", func(_ *testing.T, r *gittest.Repo) {
			r.Write(".git/info/exclude", "*_local.go\n")
			r.Write("cmd/x_local.go", "package x\n")
		}, true},
		{"a folder that git ignores", func(_ *testing.T, r *gittest.Repo) {
			r.Write("_output/ignored", "patches\n")
			r.Git("config", "--global", "core.excludesFile", filepath.Join(r.Dir, "_output/ignored"))
			r.Write("patches/0001.patch", "")
		}, true},
		{"an empty folder", func(t *testing.T, r *gittest.Repo) {
			if err := os.MkdirAll(filepath.Join(r.Dir, "new", "empty"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a repository inside that git ignores", func(_ *testing.T, r *gittest.Repo) {
			r.Write(".git/info/exclude", "inner\n")
			r.Git("init", "-q", "inner")
		}, true},
		{"settings of an editor that git ignores", func(_ *testing.T, r *gittest.Repo) {
			r.Write(".git/info/exclude", ".idea\n*.swp\nuser.bazelrc\n")
			r.Write(".idea/x.xml", "")
			r.Write(".a.go.swp", "")
			r.Write("user.bazelrc", "")
		}, false},
		{"settings of an editor", func(_ *testing.T, r *gittest.Repo) { r.Write(".idea/x.xml", "") }, true},
		{"Bazel's settings that git ignores", func(_ *testing.T, r *gittest.Repo) {
			r.Write(".git/info/exclude", ".bazelrc\n")
			r.Write(".bazelrc", "build --define=x=y\n")
		}, true},
		{"assumed unchanged", func(_ *testing.T, r *gittest.Repo) {
			r.Git("update-index", "--assume-unchanged", "a.go")
			r.Write("a.go", "package b\n")
		}, true},
		{"not to be looked at", func(_ *testing.T, r *gittest.Repo) {
			r.Git("update-index", "--skip-worktree", "a.go")
			r.Write("a.go", "package b\n")
		}, true},
		{"staged, and not to be looked at", func(_ *testing.T, r *gittest.Repo) {
			r.Write("new.go", "package a\n")
			r.Git("add", "new.go")
			r.Git("update-index", "--skip-worktree", "new.go")
		}, true},
		{"left out by a sparse checkout", func(_ *testing.T, r *gittest.Repo) {
			r.Git("sparse-checkout", "set", "--no-cone", "/*", "!/a.go")
		}, true},
		{"written with the size and times of what was there", func(t *testing.T, r *gittest.Repo) {
			r.Git("config", "core.trustctime", "false")
			r.Git("config", "core.checkStat", "minimal")
			name := filepath.Join(r.Dir, "a.go")
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			r.Write("a.go", "package b\n")
			if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"mode, which does not count", func(t *testing.T, r *gittest.Repo) {
			r.Git("config", "core.fileMode", "false")
			if err := os.Chmod(filepath.Join(r.Dir, "a.go"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"line ends that git converts", func(_ *testing.T, r *gittest.Repo) {
			r.Git("config", "core.autocrlf", "true")
			r.Write("a.go", "package a\r\n")
			r.Git("add", "a.go")
		}, true},
		{"a filter that makes the same of it", func(_ *testing.T, r *gittest.Repo) {
			r.Git("config", "filter.same.clean", "echo package a")
			r.Write(".git/info/attributes", "a.go filter=same\n")
			r.Write("a.go", "package b\n")
			r.Git("add", "a.go")
		}, true},
		{"a submodule", func(_ *testing.T, r *gittest.Repo) {
			r.Git("update-index", "--add", "--cacheinfo", "160000,"+r.Git("rev-parse", "HEAD")+",sub")
			r.Git("commit", "-q", "-m", "sub")
		}, true},
		{"a link to a file outside", func(t *testing.T, r *gittest.Repo) {
			r.At(filepath.Dir(r.Dir)).Write("outside.go", "package a\n")
			symlink(t, "../outside.go", filepath.Join(r.Dir, "b.go"))
			r.Commit()
		}, true},
		{"a link to a folder that is never a source", func(t *testing.T, r *gittest.Repo) {
			r.Write("_output/x/x.go", "package x\n")
			symlink(t, "_output/x", filepath.Join(r.Dir, "x"))
			r.Commit()
		}, true},
		{"links inside the tree, to nothing, and of an image", func(t *testing.T, r *gittest.Repo) {
			symlink(t, "a.go", filepath.Join(r.Dir, "b.go"))
			symlink(t, "nowhere", filepath.Join(r.Dir, "c.go"))
			r.Write("images/x/rootfs/etc/passwd", "")
			symlink(t, "/proc/mounts", filepath.Join(r.Dir, "images/x/rootfs/etc/mtab"))
			r.Commit()
		}, false},
		{"a folder that is a link to one with the same files", func(t *testing.T, r *gittest.Repo) {
			r.Write("sub/a.go", "package a\n")
			r.Commit()
			r.Write(".git/info/exclude", "sub\n")
			outside := filepath.Join(filepath.Dir(r.Dir), "outside")
			if err := os.Rename(filepath.Join(r.Dir, "sub"), outside); err != nil {
				t.Fatal(err)
			}
			symlink(t, outside, filepath.Join(r.Dir, "sub"))
		}, true},
		{"_output is a link", func(t *testing.T, r *gittest.Repo) {
			output := filepath.Join(r.Dir, "_output")
			if err := os.RemoveAll(output); err != nil {
				t.Fatal(err)
			}
			symlink(t, t.TempDir(), output)
		}, false},
		{"deleted", func(t *testing.T, r *gittest.Repo) {
			if err := os.Remove(filepath.Join(r.Dir, "a.go")); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"mode", func(t *testing.T, r *gittest.Repo) {
			if err := os.Chmod(filepath.Join(r.Dir, "a.go"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := gittest.New(t)
			r.Write("a.go", "package a\n")
			r.Write(".gitignore", "/_output/\n")
			r.Commit()
			r.Write("_output/.slipway/x", "")
			time.Sleep(2 * statcache.Tick)
			state(t, r) // remembers what it has read
			test.change(t, r)
			if s := state(t, r); s.Dirty != test.dirty || s.Dirty != (s.Why != "") {
				t.Errorf("Dirty = %v (%s), want %v", s.Dirty, s.Why, test.dirty)
			}
		})
	}
}

func TestStateNamesCommitTreeTimeAndTags(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "1")
	r.Commit()
	r.Git("tag", "old")
	r.Write("a", "2")
	r.Commit()
	r.Git("tag", "light,weight")
	r.Git("tag", "-a", "-m", "text", "annotated")
	r.Git("config", "--global", "log.excludeDecoration", "refs/tags/*")
	r.Git("config", "--global", "color.ui", "always")
	s := state(t, r)
	if want := r.Git("rev-parse", "HEAD"); s.Commit != want {
		t.Errorf("Commit = %s, want %s", s.Commit, want)
	}
	if want := r.Git("rev-parse", "HEAD^{tree}"); s.Tree != want {
		t.Errorf("Tree = %s, want %s", s.Tree, want)
	}
	if want := gittest.Time.Add(60e9); !s.Time.Equal(want) {
		t.Errorf("Time = %s, want %s", s.Time, want)
	}
	tags := strings.Join(s.Tags, " ")
	if tags != "annotated light,weight" && tags != "light,weight annotated" {
		t.Errorf("Tags = %q", s.Tags)
	}
}

func TestLinkedWorkTreeIsARepo(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "1")
	r.Commit()
	linked := filepath.Join(t.TempDir(), "linked")
	r.Git("worktree", "add", "-q", "--detach", linked)
	if a, b := state(t, r), state(t, r.At(linked)); a.Commit != b.Commit || b.Dirty {
		t.Errorf("the linked work tree's state is %+v, want %+v", b, a)
	}
}

func TestRepoIsFoundThroughASymbolicLink(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "1")
	r.Commit()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.Dir, link); err != nil {
		t.Fatal(err)
	}
	if s := state(t, r.At(link)); s.Dirty || s.Commit != r.Git("rev-parse", "HEAD") {
		t.Errorf("state through a link: %+v", s)
	}
}

func TestSharedRepoHasOneState(t *testing.T) {
	t.Parallel()
	g := gittest.New(t)
	g.Write("a", "1")
	g.Commit()
	open := Once(g.Dir, g.Env())
	for _, step := range []string{"clean", "changed"} {
		r, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.State(t.Context()); err != nil || s.Dirty {
			t.Errorf("%s: it is %+v, %v, and was clean at first", step, s, err)
		}
		g.Write("a", "2")
	}
	if s := state(t, g); !s.Dirty {
		t.Errorf("opened anew, it is %+v", s)
	}
}

func TestOuterRepositoryIsNotTaken(t *testing.T) {
	t.Parallel()
	outer := gittest.New(t)
	outer.Write("inner/a", "1")
	outer.Commit()
	inner := filepath.Join(outer.Dir, "inner")
	if _, err := Open(inner, outer.Env()); !errors.Is(err, ErrNone) {
		t.Errorf("Open(inner) = %v, want ErrNone", err)
	}
	if err := os.Mkdir(filepath.Join(inner, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Open(inner, outer.Env())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.State(context.Background()); err == nil {
		t.Errorf("a folder with an empty .git has the state %+v", s)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	t.Run("no git", func(t *testing.T) {
		t.Parallel()
		r := gittest.New(t)
		_, err := Open(r.Dir, r.Env("PATH", t.TempDir()))
		if err == nil || !strings.Contains(err.Error(), "git is not in PATH") {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("no commit", func(t *testing.T) {
		t.Parallel()
		g := gittest.New(t)
		r, err := Open(g.Dir, g.Env())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.State(context.Background()); err == nil || !strings.Contains(err.Error(), "no commit yet") {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("another user's", func(t *testing.T) {
		t.Parallel()
		g := gittest.New(t)
		g.Commit()
		r, err := Open(g.Dir, g.Env())
		if err != nil {
			t.Fatal(err)
		}
		r.git = r.git.With("GIT_TEST_ASSUME_DIFFERENT_OWNER=1") // git's own switch, for its own tests
		want := "git config --global --add safe.directory '" + r.Root + "'"
		if _, err = r.State(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want the remedy %s", err, want)
		}
		g.Git("config", "--global", "--add", "safe.directory", r.Root)
		if _, err = r.State(context.Background()); err != nil {
			t.Errorf("the remedy does not help: %v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		g := gittest.New(t)
		g.Commit()
		r, err := Open(g.Dir, g.Env())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err = r.State(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want %v", err, context.Canceled)
		}
	})
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, g *gittest.Repo) State {
	t.Helper()
	r, err := Open(g.Dir, g.Env())
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.State(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
