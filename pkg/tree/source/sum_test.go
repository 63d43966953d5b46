package source

import (
	"os"
	"path/filepath"
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
