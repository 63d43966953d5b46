package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/pkg/tree/worktree/gittest"
)

func TestSumOfAChangedTreeIsThatOfItsContent(t *testing.T) {
	t.Parallel()
	sum := func(r *gittest.Repo) string {
		sum, err := treeOf(t, r).Sum(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	r := repository(t)
	if got, want := sum(r), r.Git("rev-parse", "HEAD^{tree}"); got != want {
		t.Errorf("of a clean tree it is %q, want %q", got, want)
	}
	r.Write("new", "1\n")
	first := sum(r)
	seen := map[string]string{first: "a new file"}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"content", func() error { r.Write("new", "2\n"); return nil }},
		{"name", func() error { return os.Rename(filepath.Join(r.Dir, "new"), filepath.Join(r.Dir, "newer")) }},
		{"mode", func() error { return os.Chmod(filepath.Join(r.Dir, "newer"), 0o755) }},
		{"link", func() error { link(t, r, "newer", "more"); return nil }},
		{"target", func() error { remove(t, r, "more"); link(t, r, "empty", "more"); return nil }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		got := sum(r)
		if other, ok := seen[got]; ok {
			t.Errorf("after another %s the sum is that after another %s", change.what, other)
		}
		seen[got] = change.what
	}
	remove(t, r, "more")
	remove(t, r, "newer")
	r.Write("new", "1\n")
	if got := sum(r); got != first {
		t.Errorf("the content is back, and the sum is %q, was %q", got, first)
	}
}

func TestDigestsAreThoseOfTheContent(t *testing.T) {
	t.Parallel()
	digests := func(r *gittest.Repo, accept func(string) bool) string {
		t.Helper()
		lines, err := treeOf(t, r).Digests(t.Context(), accept)
		if err != nil {
			t.Fatal(err)
		}
		return string(lines)
	}
	r := repository(t)
	all := func(name string) bool { return name != "new" }
	clean := digests(r, all)
	if got := strings.Count(clean, "\n"); got != len(committed) {
		t.Errorf("%d lines, want %d", got, len(committed))
	}
	r.Write("new", "1\n") // now files are read from the work tree
	if got := digests(r, all); got != clean {
		t.Errorf("of a commit they are\n%s\nand of the same files\n%s", clean, got)
	}
	one := func(name string) bool { return name == "Makefile" }
	before := digests(r, one)
	if strings.Count(before, "\n") != 1 || !strings.Contains(clean, before) {
		t.Errorf("of one file they are %q", before)
	}
	r.Write("Makefile", "all: x\n")
	if digests(r, one) == before {
		t.Error("an edit changes nothing")
	}
}
