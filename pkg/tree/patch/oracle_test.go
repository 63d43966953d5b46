package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway.build/pkg/tree/module"
)

// A tree is the files of a repository by path.
type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	if data, ok := f[name]; ok {
		return []byte(data), nil
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
}

// write writes the files below a folder.
func (f files) write(t testing.TB, dir string) {
	t.Helper()
	for name, data := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runGit runs git in a folder without any configuration.
func runGit(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	return both.String(), err
}

func mustGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := runGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// formatPatch returns what git format-patch says of one version of a tree after another.
func formatPatch(t testing.TB, versions ...files) []byte {
	t.Helper()
	dir := t.TempDir()
	mustGit(t, dir, "init", "-q")
	for i, v := range versions {
		if i > 0 {
			mustGit(t, dir, "rm", "-rq", "--ignore-unmatch", ".")
		}
		v.write(t, dir)
		mustGit(t, dir, "add", "-A")
		mustGit(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("Version %d\n\nIts body.", i))
	}
	return []byte(mustGit(t, dir, "format-patch", "--stdout", "--binary", "--root", "HEAD~"+strconv.Itoa(len(versions)-1)+".."))
}

// gitApply returns what git apply makes of a tree, with the offsets that it reports, or an error if it refuses.
func gitApply(t *testing.T, tree files, patch []byte) (files, []int, error) {
	t.Helper()
	dir := t.TempDir()
	tree.write(t, dir)
	file := filepath.Join(t.TempDir(), "a.patch")
	if err := os.WriteFile(file, patch, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := runGit(t, dir, "apply", "--verbose", file)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, out)
	}
	result := files{}
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		result[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int
	for _, m := range regexp.MustCompile(`\(offset (-?\d+) lines?\)`).FindAllStringSubmatch(out, -1) {
		by, _ := strconv.Atoi(m[1])
		offsets = append(offsets, by)
	}
	return result, offsets, nil
}

// kubernetes is a repository with two modules.
func kubernetes(t testing.TB) *Repository {
	t.Helper()
	r, err := KubernetesRepository(&module.Module{Name: "cmd", Requires: []module.Requirement{
		{Dependency: module.Dependency{Path: Kubernetes, Version: "v1.37.1"}},
		{Dependency: module.Dependency{Path: "k8s.io/api", Version: "v0.37.1"}},
		{Dependency: module.Dependency{Path: "k8s.io/utils", Version: "v0.0.0-20260626114624-be93311217bd"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply applies a patch to a tree, and returns the tree and the report.
func apply(t *testing.T, tree files, patch []byte) (files, Report) {
	t.Helper()
	p, err := Parse("a.patch", patch)
	if err != nil {
		t.Fatal(err)
	}
	o := NewOverlay(kubernetes(t), tree)
	r, err := o.Apply(p)
	if err != nil {
		t.Fatal(err)
	}
	result := maps.Clone(tree)
	for name, c := range o.Changes() {
		if c.Removed {
			delete(result, name)
		} else {
			result[name] = string(c.Data)
		}
	}
	return result, r
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestApplyEqualsGitApply(t *testing.T) {
	t.Parallel()
	text := numbered(1, 40)
	edit := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	binary := string([]byte{0, 1, 2, 0, 255}) + text
	for _, test := range []struct {
		name     string
		old, new files
		tree     files // that the patch is applied to; nil is old
		want     Verdict
	}{
		{name: "change", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 20\n", "line twenty\n")}},
		{name: "two hunks", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 5\n", "", "line 30\n", "line thirty\nmore\n")}},
		{name: "moved down", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 20\n", "line twenty\n")},
			tree: files{"pkg/a.go": "one\ntwo\n" + text}},
		{name: "moved up", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 20\n", "line twenty\n")},
			tree: files{"pkg/a.go": edit(text, "line 1\nline 2\n", "")}},
		{name: "hunks move apart", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 5\n", "line five\n",
			"line 30\n", "line thirty\n")},
			tree: files{"pkg/a.go": edit(text, "line 15\n", "new\nnew\nnew\n")}},
		{name: "nearest of two places", old: files{"pkg/a.go": numbered(1, 9) + "x\ny\nz\n" + numbered(1, 9) + "x\ny\nz\n" + numbered(1, 9)},
			new:  files{"pkg/a.go": numbered(1, 9) + "x\ny\nz\n" + numbered(1, 9) + "x\nY\nz\n" + numbered(1, 9)},
			tree: files{"pkg/a.go": "0\n" + numbered(1, 9) + "x\ny\nz\n" + numbered(1, 9) + "x\ny\nz\n" + numbered(1, 9)}},
		{name: "insertion at the end", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text + "line 41\n"}},
		{name: "insertion at the end, which moved", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text + "line 41\n"},
			tree: files{"pkg/a.go": "0\n" + text}},
		{name: "insertion at an end that is another", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text + "line 41\n"},
			tree: files{"pkg/a.go": text + "other\n"}, want: Conflicts},
		{name: "insertion at the start", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": "line 0\n" + text}},
		{name: "insertion at a start that is another", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": "line 0\n" + text},
			tree: files{"pkg/a.go": "other\n" + text}, want: Conflicts},
		{name: "no newline at the end", old: files{"pkg/a.go": text + "end"}, new: files{"pkg/a.go": text + "end\n"}},
		{name: "newline at the end goes", old: files{"pkg/a.go": text + "end\n"}, new: files{"pkg/a.go": text + "end"}},
		{name: "newline at the end is expected", old: files{"pkg/a.go": text + "end\n"}, new: files{"pkg/a.go": text + "END\n"},
			tree: files{"pkg/a.go": text + "end"}, want: Conflicts},
		{name: "new file", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text, "pkg/deep/b.go": "package b\n"}},
		{name: "new empty file", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text, "pkg/empty": ""}},
		{name: "new file below a file", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text, "pkg/b/c.go": "package c\n"},
			tree: files{"pkg/a.go": text, "pkg/b": "b\n"}, want: Conflicts},
		{name: "new file that exists", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text, "pkg/b.go": "package b\n"},
			tree: files{"pkg/a.go": text, "pkg/b.go": "package c\n"}, want: Conflicts},
		{name: "deleted file", old: files{"pkg/a.go": text, "pkg/b.go": "package b\n"}, new: files{"pkg/a.go": text}},
		{name: "deleted file that changed", old: files{"pkg/a.go": text, "pkg/b.go": "package b\n"}, new: files{"pkg/a.go": text},
			tree: files{"pkg/a.go": text, "pkg/b.go": "package b\n\nvar x int\n"}, want: Conflicts},
		{name: "deleted file that is not there", old: files{"pkg/a.go": text, "pkg/b.go": "package b\n"}, new: files{"pkg/a.go": text},
			tree: files{"pkg/a.go": "other\n"}, want: Upstream},
		{name: "rename", old: files{"pkg/a.go": text}, new: files{"pkg/b/c.go": text}},
		{name: "rename with a change", old: files{"pkg/a.go": text}, new: files{"pkg/b.go": edit(text, "line 20\n", "line twenty\n")}},
		{name: "rename, moved", old: files{"pkg/a.go": text}, new: files{"pkg/b.go": edit(text, "line 20\n", "line twenty\n")},
			tree: files{"pkg/a.go": "0\n" + text}},
		{name: "rename to another module", old: files{"pkg/a.go": text}, new: files{"staging/src/k8s.io/api/a.go": text}},
		{name: "binary", old: files{"pkg/a.bin": binary}, new: files{"pkg/a.bin": binary + "more\x00"}},
		{name: "new binary", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": text, "pkg/a.bin": binary}},
		{name: "deleted binary", old: files{"pkg/a.go": text, "pkg/a.bin": binary}, new: files{"pkg/a.go": text}},
		{name: "binary that is another", old: files{"pkg/a.bin": binary}, new: files{"pkg/a.bin": binary + "more\x00"},
			tree: files{"pkg/a.bin": "other" + binary}, want: Conflicts},
		{name: "line that is another", old: files{"pkg/a.go": text}, new: files{"pkg/a.go": edit(text, "line 20\n", "line twenty\n")},
			tree: files{"pkg/a.go": edit(text, "line 21\n", "line 21b\n")}, want: Conflicts},
		{name: "file in a folder's place", old: files{"pkg/a/b.go": text}, new: files{"pkg/a/b.go": text + "x\n"},
			tree: files{"pkg/a": text}, want: Conflicts},
		{name: "line ends of another system", old: files{"pkg/a.go": strings.ReplaceAll(text, "\n", "\r\n")},
			new: files{"pkg/a.go": strings.ReplaceAll(edit(text, "line 20\n", "line twenty\n"), "\n", "\r\n")}},
		{name: "name with spaces and letters", old: files{"pkg/é ü.go": text}, new: files{"pkg/é ü.go": text + "x\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			patch := formatPatch(t, test.old, test.new)
			tree := test.tree
			if tree == nil {
				tree = test.old
			}
			want, offsets, err := gitApply(t, tree, patch)
			got, r := apply(t, tree, patch)
			if r.Verdict != test.want || (err != nil) != (test.want != Applies) {
				t.Fatalf("%v: %v, git: %v", r.Verdict, r.Conflict, err)
			}
			if test.want != Applies {
				return
			}
			if !maps.Equal(got, want) {
				t.Errorf("made %q, git %q", got, want)
			}
			var moved []int
			for _, m := range r.Moved {
				moved = append(moved, m.By)
			}
			if !slices.Equal(moved, offsets) {
				t.Errorf("offsets %v, git's %v", moved, offsets)
			}
			if _, again := apply(t, got, patch); again.Verdict != Upstream {
				t.Errorf("applied again: %v %v", again.Verdict, again.Conflict)
			}
		})
	}
}

// Short files of few different lines have many places where a hunk may apply.
func TestRandomEditsApplyAsGitAppliesThem(t *testing.T) {
	t.Parallel()
	rounds := 25
	if testing.Short() {
		rounds = 10
	}
	const seed = 2026
	random := rand.New(rand.NewPCG(seed, seed))
	letters := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = string(rune('a'+random.IntN(4))) + "\n"
		}
		return all
	}
	mutate := func(text []string, edits int) []string {
		text = slices.Clone(text)
		for range edits {
			at := random.IntN(len(text))
			switch random.IntN(3) {
			case 0:
				text = slices.Insert(text, at, letters(1+random.IntN(3))...)
			case 1:
				text = slices.Delete(text, at, min(len(text)-1, at+1))
			default:
				text[at] = string(rune('A'+random.IntN(26))) + "\n"
			}
		}
		return text
	}
	join := func(text []string) string { return strings.Join(text, "") }
	applied := 0
	for range rounds {
		old := letters(10 + random.IntN(30))
		edited, drifted := join(mutate(old, 1+random.IntN(3))), join(mutate(old, random.IntN(3)))
		if edited == join(old) {
			continue
		}
		tree := files{"pkg/a": drifted}
		patch := formatPatch(t, files{"pkg/a": join(old)}, files{"pkg/a": edited})
		want, offsets, gitErr := gitApply(t, tree, patch)
		got, r := apply(t, tree, patch)
		if r.Verdict == Upstream {
			continue // git does not look for that
		}
		if (gitErr != nil) != (r.Verdict == Conflicts) {
			t.Fatalf("%v (%v), but git: %v\n%s\non\n%s", r.Verdict, r.Conflict, gitErr, patch, drifted)
		}
		if gitErr != nil {
			continue
		}
		applied++
		if !maps.Equal(got, want) || len(r.Moved) != len(offsets) {
			t.Fatalf("made %q by %v, git %q by %v, of\n%s\non\n%s", got, r.Moved, want, offsets, patch, drifted)
		}
	}
	if applied < rounds/4 {
		t.Errorf("only %d of %d patches applied", applied, rounds)
	}
}
