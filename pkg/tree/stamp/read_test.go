package stamp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/tree/worktree/gittest"
)

const base = "v1.36.3"

func TestVersionFromGit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prepare func(r *gittest.Repo)
		env     []string
		outside string
		want    Stamp // C and c stand for the commit and its first 12 digits
	}{
		{
			name:    "clean",
			prepare: func(*gittest.Repo) {},
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", gittest.Time},
		}, {
			name:    "dirty",
			prepare: func(r *gittest.Repo) { r.Write("a.go", "package b\n") },
			want:    Stamp{"v1.36.3+slipway.20261120235300.c.dirty", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name:    "untracked",
			prepare: func(r *gittest.Repo) { r.Write("new.go", "package a\n") },
			want:    Stamp{"v1.36.3+slipway.20261120235300.c.dirty", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name: "the newest of the tags",
			prepare: func(r *gittest.Repo) {
				for _, tag := range []string{"v1.36.3+acme.1", "v1.36.3+acme.2", "zebra", "v1.36.3"} {
					r.Git("tag", tag)
				}
			},
			want: Stamp{"v1.36.3+acme.2", "C", "clean", "1", "36", gittest.Time},
		}, {
			name: "tags of slipway's own versions do not count",
			prepare: func(r *gittest.Repo) {
				for _, tag := range []string{"v0.2.0", "v0.3.0-rc.1", "v0.3.0+meta.1"} {
					r.Git("tag", tag)
				}
			},
			want: Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", gittest.Time},
		}, {
			name:    "made with a folder outside of the tree",
			prepare: func(r *gittest.Repo) { r.Git("tag", "v1.36.3+acme.1") },
			outside: "../../slipway",
			want:    Stamp{"v1.36.3+acme.1.dirty", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name:    "annotated tag, dirty",
			prepare: func(r *gittest.Repo) { r.Git("tag", "-a", "-m", "x", "v1.36.3+acme.1"); r.Write("new.go", "") },
			want:    Stamp{"v1.36.3+acme.1.dirty", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name:    "a version file in a git tree does not count",
			prepare: func(r *gittest.Repo) { r.Write(".git/info/exclude", "version\n"); r.Write("version", "nonsense") },
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", gittest.Time},
		}, {
			name: "a file that git ignores",
			prepare: func(r *gittest.Repo) {
				r.Git("tag", "v1.36.3+acme.1")
				r.Write(".git/info/exclude", "*_local.go\n")
				r.Write("a_local.go", "package a\n")
			},
			want: Stamp{"v1.36.3+acme.1.dirty", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name:    "version set",
			prepare: func(r *gittest.Repo) { r.Write("new.go", "") },
			env:     []string{"KUBE_GIT_VERSION", "v1.36.3"},
			want:    Stamp{"v1.36.3", "C", "dirty", "1", "36", gittest.Time},
		}, {
			name:    "tree state set",
			prepare: func(r *gittest.Repo) { r.Write("new.go", "") },
			env:     []string{"KUBE_GIT_TREE_STATE", "clean"},
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", gittest.Time},
		}, {
			name:    "commit set, so the tag does not count",
			prepare: func(r *gittest.Repo) { r.Git("tag", "v1.36.3+acme.1") },
			env:     []string{"KUBE_GIT_COMMIT", "abcdef1"},
			want:    Stamp{"v1.36.3+slipway.20261120235300.abcdef1", "abcdef1", "clean", "1", "36", gittest.Time},
		}, {
			name:    "major and minor set",
			prepare: func(*gittest.Repo) {},
			env:     []string{"KUBE_GIT_MAJOR", "2", "KUBE_GIT_MINOR", "7"},
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "2", "7", gittest.Time},
		}, {
			name:    "date set",
			prepare: func(*gittest.Repo) {},
			env:     []string{"SOURCE_DATE_EPOCH", "0"},
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", time.Unix(0, 0).UTC()},
		}, {
			name:    "git's own variables have no influence",
			prepare: func(*gittest.Repo) {},
			env:     []string{"GIT_DIR", "/nowhere", "GIT_WORK_TREE", "/nowhere", "GIT_INDEX_FILE", "/nowhere"},
			want:    Stamp{"v1.36.3+slipway.20261120235300.c", "C", "clean", "1", "36", gittest.Time},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := repository(t)
			test.prepare(r)
			commit := r.Git("rev-parse", "HEAD")
			if test.want.Commit == "C" {
				test.want.Commit = commit
			}
			test.want.Version = strings.Replace(test.want.Version, "00.c", "00."+commit[:12], 1)
			got, err := Read(context.Background(), Request{Root: r.Dir, Base: base, Env: r.Env(test.env...), Outside: test.outside})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCloneHasTheSameStamp(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write("a.go", "package b\n")
	r.Commit()
	want := read(t, r)
	for _, options := range [][]string{nil, {"--depth=1"}, {"--depth=1", "--no-tags"}, {"--filter=blob:none"}} {
		if diff := cmp.Diff(want, read(t, r.Clone(options...))); diff != "" {
			t.Errorf("git clone %s: %s", strings.Join(options, " "), diff)
		}
	}
}

func TestUnpackedTreeHasTheStampOfItsVersionFile(t *testing.T) {
	t.Parallel()
	origin := repository(t)
	want := read(t, origin)

	// Below another repository, whose state must not matter.
	outer := repository(t)
	outer.Write("other", "")
	outer.Commit()
	outer.Write("kubernetes/version", string(Marshal(want)))
	if diff := cmp.Diff(want, read(t, outer.At(filepath.Join(outer.Dir, "kubernetes")))); diff != "" {
		t.Error(diff)
	}
}

func TestNamedVersionFileGoesBeforeGit(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write("_output/v", "KUBE_GIT_VERSION='v1.36.3+file'\nKUBE_GIT_COMMIT='0123456'\nKUBE_GIT_TREE_STATE='archive'\n"+
		"KUBE_GIT_MINOR='36'\n")
	read := func(env ...string) Stamp {
		t.Helper()
		s, err := Read(context.Background(), Request{Root: r.Dir, Base: base, Env: r.Env(env...)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	got := read("KUBE_GIT_VERSION_FILE", "_output/v") // relative to the root; it has no date, so git's is taken
	if diff := cmp.Diff(Stamp{"v1.36.3+file", "0123456", "archive", "1", "36", gittest.Time}, got); diff != "" {
		t.Error(diff)
	}
	got = read("KUBE_GIT_VERSION_FILE", filepath.Join(r.Dir, "_output/v"), "SOURCE_DATE_EPOCH", "7", "KUBE_GIT_VERSION", "v1.36.3+env")
	if diff := cmp.Diff(Stamp{"v1.36.3+env", "0123456", "archive", "1", "36", time.Unix(7, 0).UTC()}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamedVersionFileMayHaveOneLine(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Write("_output/v", "KUBE_GIT_VERSION='v1.36.3+acme.1'\n")
	got, err := Read(t.Context(), Request{Root: r.Dir, Base: base, Env: r.Env("KUBE_GIT_VERSION_FILE", "_output/v")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Stamp{"v1.36.3+acme.1", r.Git("rev-parse", "HEAD"), "clean", "1", "36", gittest.Time}, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnpackedTreeThatWasEditedIsDirty(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(dir string) error{
		"":                 func(string) error { return nil },
		"changed":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.go"), []byte("package b\n"), 0o644) },
		"executable":       func(dir string) error { return os.Chmod(filepath.Join(dir, "a.go"), 0o755) },
		"a new file":       func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.go"), nil, 0o644) },
		"a removed file":   func(dir string) error { return os.Remove(filepath.Join(dir, "a.go")) },
		"a link elsewhere": func(dir string) error { return os.Symlink("a.go", filepath.Join(dir, "c.go")) },
	} {
		origin := repository(t)
		file := VersionFile{Stamp: read(t, origin)}
		var err error
		if file.Sources, err = sourcesOf(t.Context(), origin.Dir); err != nil {
			t.Fatal(err)
		}
		unpacked := origin.At(t.TempDir())
		unpacked.Write("a.go", "package a\n")
		unpacked.Write(".gitignore", "/_output/\n")
		unpacked.Write("_output/made", "")
		unpacked.Write("version", string(file.Marshal()))
		if err := edit(unpacked.Dir); err != nil {
			t.Fatal(err)
		}
		want := file.Stamp
		if name != "" {
			want.TreeState, want.Version = "dirty", want.Version+".dirty"
		}
		if diff := cmp.Diff(want, read(t, unpacked)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEnvironmentAloneIsEnough(t *testing.T) {
	t.Parallel()
	env := map[string]string{"KUBE_GIT_VERSION": "v1.36.3+acme.1", "KUBE_GIT_COMMIT": "0123456789ab",
		"KUBE_GIT_TREE_STATE": "clean", "SOURCE_DATE_EPOCH": "1795218780"}
	got, err := Read(context.Background(), Request{Root: t.TempDir(), Base: base, Env: func(k string) string { return env[k] }})
	if err != nil {
		t.Fatal(err)
	}
	want := Stamp{"v1.36.3+acme.1", "0123456789ab", "clean", "1", "36", time.Unix(1795218780, 0).UTC()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := repository(t)
	r.Git("tag", "v1.36.4+under_score")
	r.Write("_output/bad", "KUBE_GIT_VERSION='v1.36.3'\nnonsense\n")
	r.Write("_output/other", "KUBE_GIT_VERSION='v1.36.2+acme.1'\n")
	lone := t.TempDir()
	write(t, lone, "KUBE_GIT_VERSION='v1.36.3'\n")
	whole := []string{"KUBE_GIT_VERSION", "v1.36.3", "KUBE_GIT_COMMIT", "0123456", "KUBE_GIT_TREE_STATE", "clean"}
	empty := t.TempDir()
	noDate := t.TempDir()
	write(t, noDate, "KUBE_GIT_VERSION='v1.36.3'\nKUBE_GIT_COMMIT='0123456'\nKUBE_GIT_TREE_STATE='clean'\n")
	broken := t.TempDir()
	write(t, broken, "KUBE_GIT_VERSION='v1.36.3'\nKUBE_GIT_VERSION='v1.36.3'\n")
	tests := []struct {
		name, root, base string
		env              []string
		want             string
	}{
		{"pre-release", r.Dir, base, []string{"KUBE_GIT_VERSION", "v1.36.3-acme.1"},
			"images of an older patch; use build metadata: v1.36.3+acme.1"},
		{"no v", r.Dir, base, []string{"KUBE_GIT_VERSION", "1.36.3"}, `KUBE_GIT_VERSION: "1.36.3" is not a semantic version`},
		{"short version", r.Dir, base, []string{"KUBE_GIT_VERSION", "v1.36"}, "is not a semantic version"},
		{"blank in metadata", r.Dir, base, []string{"KUBE_GIT_VERSION", "v1.36.3+a b"}, "is not a semantic version"},
		{"long version", r.Dir, base, []string{"KUBE_GIT_VERSION", "v1.36.3+" + strings.Repeat("x", 121)}, "has 129 characters"},
		{"commit", r.Dir, base, []string{"KUBE_GIT_COMMIT", "HEAD"}, "KUBE_GIT_COMMIT"},
		{"tree state", r.Dir, base, []string{"KUBE_GIT_TREE_STATE", "tidy"}, "clean, dirty or archive"},
		{"major", r.Dir, base, []string{"KUBE_GIT_MAJOR", "one"}, "KUBE_GIT_MAJOR"},
		{"minor", r.Dir, base, []string{"KUBE_GIT_MINOR", "36++"}, "KUBE_GIT_MINOR"},
		{"negative date", r.Dir, base, []string{"SOURCE_DATE_EPOCH", "-1"}, "SOURCE_DATE_EPOCH"},
		{"fractional date", r.Dir, base, []string{"SOURCE_DATE_EPOCH", "1.5"}, "SOURCE_DATE_EPOCH"},
		{"date beyond RFC 3339", r.Dir, base, []string{"SOURCE_DATE_EPOCH", "253402300800"}, "SOURCE_DATE_EPOCH"},
		{"base", r.Dir, "1.36", nil, `base "1.36"`},
		{"base with metadata", r.Dir, "v1.36.3+x", nil, `base "v1.36.3+x"`},
		{"tag", r.Dir, "v1.36.4", nil, "tag v1.36.4+under_score: build metadata"},
		{"named file missing", r.Dir, base, []string{"KUBE_GIT_VERSION_FILE", "none"}, "KUBE_GIT_VERSION_FILE: open"},
		{"named file malformed", r.Dir, base, []string{"KUBE_GIT_VERSION_FILE", "_output/bad"}, "_output/bad: line 2: "},
		{"nothing known", empty, base, nil, "to do without, set KUBE_GIT_VERSION, KUBE_GIT_COMMIT, KUBE_GIT_TREE_STATE, SOURCE_DATE_EPOCH"},
		{"something known", empty, base, whole, "to do without, set SOURCE_DATE_EPOCH"},
		{"version of another Kubernetes", r.Dir, base, []string{"KUBE_GIT_VERSION", "v1.36.2+acme.1"},
			"a version of Kubernetes v1.36.2, and the tree is of v1.36.3"},
		{"file of another Kubernetes", r.Dir, base, []string{"KUBE_GIT_VERSION_FILE", "_output/other"}, "a version of Kubernetes v1.36.2"},
		{"file with a version alone", lone, base, nil, "the file version is incomplete; to do without, set KUBE_GIT_COMMIT, " +
			"KUBE_GIT_TREE_STATE, SOURCE_DATE_EPOCH"},
		{"file without a date", noDate, base, nil, "set SOURCE_DATE_EPOCH"},
		{"file malformed", broken, base, nil, "version: line 2: KUBE_GIT_VERSION is already set in line 1"},
		{"no git", r.Dir, base, []string{"PATH", empty}, "git is not in PATH"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Read(context.Background(), Request{Root: test.root, Base: test.base, Env: r.Env(test.env...)})
			if err == nil {
				t.Fatalf("no error, but %+v", s)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "stamp "+test.root+": ") {
				t.Errorf("err = %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestBaseMayBeAPreRelease(t *testing.T) {
	t.Parallel()
	r := repository(t)
	for _, version := range []string{"", "v1.37.0-rc.0+acme.1"} {
		s, err := Read(context.Background(), Request{Root: r.Dir, Base: "v1.37.0-rc.0", Env: r.Env("KUBE_GIT_VERSION", version)})
		if err != nil || !strings.HasPrefix(s.Version, "v1.37.0-rc.0+") || s.Minor != "37+" {
			t.Errorf("KUBE_GIT_VERSION=%s: %+v, %v", version, s, err)
		}
	}
}

func TestGitIsStartedTwiceAtMost(t *testing.T) {
	t.Parallel()
	r := repository(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>'%s'\nexec '%s' \"$@\"\n", log, real)
	childtest.Script(t, filepath.Join(bin, "git"), script)
	path := bin + string(filepath.ListSeparator) + os.Getenv("PATH")
	if _, err := Read(context.Background(), Request{Root: r.Dir, Base: base, Env: r.Env("PATH", path)}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 2 {
		t.Errorf("git was started %d times:\n%s", n, data)
	}
}

func TestReadIsCanceled(t *testing.T) {
	t.Parallel()
	r := repository(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, Request{Root: r.Dir, Base: base, Env: r.Env()}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func BenchmarkRead(b *testing.B) {
	r := repository(b)
	for b.Loop() {
		if _, err := Read(context.Background(), Request{Root: r.Dir, Base: base, Env: r.Env()}); err != nil {
			b.Fatal(err)
		}
	}
}

// repository has one commit, made at gittest.Time.
func repository(t testing.TB) *gittest.Repo {
	t.Helper()
	r := gittest.New(t)
	r.Write("a.go", "package a\n")
	r.Write(".gitignore", "/_output/\n")
	r.Commit()
	return r
}

func read(t *testing.T, r *gittest.Repo) Stamp {
	t.Helper()
	s, err := Read(context.Background(), Request{Root: r.Dir, Base: base, Env: r.Env()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(version), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSettingsThatCannotBeUsedAreUsageErrors(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("file", "")
	r.Commit()
	for _, setting := range [][]string{
		{"SOURCE_DATE_EPOCH", "yesterday"},
		{"KUBE_GIT_VERSION", "1.36"},
		{"KUBE_GIT_VERSION", "v1.36.3-rc.1"},
		{"KUBE_GIT_VERSION_FILE", "none"},
	} {
		_, err := Read(t.Context(), Request{Root: r.Dir, Base: "v1.36.3", Env: r.Env(setting...)})
		if !badrequest.Is(err) {
			t.Errorf("%v: error is %v, want one that is the request's fault", setting, err)
		}
	}
}
