package lines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/worktree/gittest"
)

// The folder of a tree may have any name, one that is a pattern, too.
func TestUnfinishedWorkIsFoundInAnyFolder(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Commit()
	root := filepath.Join(t.TempDir(), "a [b] *")
	dir := filepath.Join(root, filepath.FromSlash(Folder), "acme-1.37")
	r.Git("worktree", "add", "-q", "--detach", dir)
	if got := unfinished(t, r, root); got != nil {
		t.Errorf("without changes: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("edited"), 0o666); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dir + ": it has changes that are not committed"}, unfinished(t, r, root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func unfinished(t *testing.T, r *gittest.Repo, root string) (found []string) {
	t.Helper()
	all, err := Unfinished(t.Context(), root, r.Env())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		found = append(found, u.Dir+": "+u.Error())
	}
	return found
}

func TestCommitsOnNoBranchAreUnfinishedWork(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Commit()
	dir := filepath.Join(r.Dir, filepath.FromSlash(Folder), "acme-1.37")
	r.Git("worktree", "add", "-q", "--detach", dir)
	work := r.At(dir)
	work.Write("b", "")
	work.Commit()
	want := []string{dir + ": it has commits that are on no branch"}
	if diff := cmp.Diff(want, unfinished(t, r, r.Dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	work.Git("branch", "kept")
	if got := unfinished(t, r, r.Dir); got != nil {
		t.Errorf("on a branch: %q", got)
	}
}

// A commit that the tree itself is at, as a pipeline has it, is not lost with the work trees.
func TestCommitOfTheTreeIsNoUnfinishedWork(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Commit()
	r.Git("checkout", "-q", "--detach")
	r.Write("b", "")
	r.Commit()
	r.Git("worktree", "add", "-q", "--detach", filepath.Join(r.Dir, filepath.FromSlash(Folder), "acme-1.37"))
	if got := unfinished(t, r, r.Dir); got != nil {
		t.Errorf("%q", got)
	}
}

// open opens the work tree of the line acme-1.37, which is the branch of a repository.
func open(t *testing.T, r *gittest.Repo, change bool) (*Work, error) {
	t.Helper()
	r.Write(File, "lines: [{name: acme-1.37, branch: main, minor: 1.37, end: 2027-10-28, owner: ops@acme.example}]\n")
	all, err := Read(t.Context(), r.Dir, "", r.Env())
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Open(t.Context(), change)
}

// If what a killed command has left cannot be thrown away, the work tree stays: below _output, there may be a copy in which somebody edits
// patches.
func TestWorkTreeThatCannotBeResetStays(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Write(".gitignore", "/_output\n")
	r.Commit()
	w, err := open(t, r, true) // and nothing ends the change
	if err != nil {
		t.Fatal(err)
	}
	r.At(w.Dir).Write("_output/edit/kubernetes/work.go", "")
	lock := strings.TrimSpace(r.At(w.Dir).Git("rev-parse", "--git-path", "index.lock"))
	if err := os.MkdirAll(filepath.Join(lock, "in the way"), 0o777); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		want := "throw away what a killed command has left in " + w.Dir
		if _, err := open(t, r, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(filepath.Join(w.Dir, "_output/edit/kubernetes/work.go")); err != nil {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, r, true); err != nil {
		t.Error(err)
	}
}

func TestHalfAWorkTreeIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a", "")
	r.Commit()
	w := r.At(filepath.Join(r.Dir, filepath.FromSlash(Folder), "acme-1.37"))
	w.Write("half", "")
	if _, err := open(t, r, false); err == nil || !strings.Contains(err.Error(), "is in the place of the line's work tree") {
		t.Errorf("error %v", err)
	}
	r.Write(State+"/acme-1.37", making)
	if _, err := open(t, r, false); err != nil {
		t.Error(err)
	}
}

func TestFoldersBesideTheTreeAreBesideItsWorkTree(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, folder, replace, problem string }{
		{"beside", ".", "../slipway", ""},
		{"further away", ".", "../../src/slipway", ""},
		{"of a project", "images/coredns", "../../../slipway", ""},
		{"inside", "cmd", "../slipway", ""},
		{"missing", ".", "../nowhere", ""},
		{"in the tree", ".", "../../../slipway", "go.mod replaces example.com/m by the folder ../../../slipway, outside of the tree: " +
			"from the work tree, that would be "},
		{"a line", ".", "../acme-1.37", "that is another folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := gittest.New(t)
			r = r.At(filepath.Join(r.Dir, "deep", "down", "here"))
			r.Write(tt.folder+"/go.mod", "module example.com/k\nrequire example.com/m v1.0.0\nreplace example.com/m => "+tt.replace+"\n")
			r.Git("init", "-q", "-b", "main")
			r.Commit()
			from := filepath.Join(tt.folder, tt.replace)
			want := filepath.Join(r.Dir, from)
			if tt.name != "missing" {
				r.Write(filepath.Join(from, "go.mod"), "module example.com/m\n")
			}
			for range 2 {
				w, err := open(t, r, false)
				if tt.problem != "" {
					if err == nil || !strings.Contains(err.Error(), tt.problem) {
						t.Errorf("error %v", err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := filepath.Join(w.Dir, from); !same(got, want) && tt.name != "missing" && tt.name != "inside" {
					t.Errorf("%s is not %s", got, want)
				}
			}
		})
	}
}
