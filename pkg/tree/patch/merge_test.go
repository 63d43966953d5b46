package patch

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// merge lets git merge a patch of one commit. It returns the state of the changed files, as git status prints it, and their content.
func merge(t *testing.T, tree files, patch string) (*Merge, string, func(name string) string) {
	t.Helper()
	p, err := Parse("a.patch", []byte("From: A <a@example.com>\nSubject: A patch\n\n---\n"+patch))
	if err != nil {
		t.Fatal(err)
	}
	o := NewOverlay(&Repository{Places: []Place{{Module: "example.com/numbers"}}}, tree)
	m, err := o.Merge(p.Commits[0], func(string, string) ([]byte, bool) { return nil, false })
	if err != nil {
		t.Fatal(err)
	}
	dir, tmp := t.TempDir(), t.TempDir()
	tree.write(t, dir)
	mustGit(t, dir, "init", "-q")
	mustGit(t, dir, "add", "-A")
	mustGit(t, dir, "commit", "-q", "--allow-empty", "-m", "Tree")
	mail := filepath.Join(tmp, "mail")
	for i, data := range append(m.Bases, m.Text) {
		if err := os.WriteFile(mail, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if i < len(m.Bases) {
			mustGit(t, dir, "hash-object", "-w", mail)
		}
	}
	if out, err := runGit(t, dir, "-c", "merge.conflictStyle=diff3", "am", "--3way", mail); err == nil {
		t.Errorf("no conflict: %s", out)
	}
	return m, mustGit(t, dir, "status", "--porcelain"), func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

func TestConflictIsWhereTheFileIsMostLikeTheHunk(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 1000) // git makes a delta of it
	if _, err := rand.NewChaCha8([32]byte{}).Read(noise); err != nil {
		t.Fatal(err)
	}
	binary := formatPatch(t, files{"small": "\x00", "large": "\x00" + string(noise)},
		files{"small": "\x00\x02", "large": "\x01" + string(noise) + "\x00"})
	m, status, read := merge(t, files{
		"numbers.txt": "zero\none\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten",
		"small":       "\x00\x03",
		"large":       "\x00",
	}, `diff --git a/numbers.txt b/numbers.txt
--- a/numbers.txt
+++ b/numbers.txt
@@ -1,4 +1,4 @@
 one
-two
+TWO
 three
 four
@@ -8,3 +8,3 @@
 eight
-nine
+NINE
 ten
diff --git a/gone.txt b/gone.txt
--- a/gone.txt
+++ b/gone.txt
@@ -1 +1 @@
-was
+is
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
`+string(binary[bytes.Index(binary, []byte("diff --git")):]))
	if !slices.Equal(m.LeftOut, []string{"large"}) {
		t.Errorf("left out %q", m.LeftOut)
	}
	if want := "DU gone.txt\nUU large\nA  new.txt\nUU numbers.txt\nUU small\n"; status != want {
		t.Errorf("status\n%s\nwant\n%s", status, want)
	}
	const want = `zero
one
<<<<<<< HEAD
2
||||||| constructed merge base
two
=======
TWO
>>>>>>> A patch
three
four
five
six
seven
eight
<<<<<<< HEAD
nine
ten
||||||| constructed merge base
nine
ten
=======
NINE
ten
>>>>>>> A patch
`
	if got := read("numbers.txt"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestConflictInARenamedFileIsUnderItsNewName(t *testing.T) {
	t.Parallel()
	for status, there := range map[string]files{
		"UU new.txt\nD  old.txt\n": {"old.txt": "one\n2\nthree\n"},
		"AA new.txt\nD  old.txt\n": {"old.txt": "one\n2\nthree\n", "new.txt": "another\n"},
	} {
		_, got, read := merge(t, there, `diff --git a/old.txt b/new.txt
similarity index 60%
rename from old.txt
rename to new.txt
--- a/old.txt
+++ b/new.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
`)
		if got != status || !strings.Contains(read("new.txt"), "<<<<<<<") {
			t.Errorf("status\n%s\nwant\n%s\nand in new.txt\n%s", got, status, read("new.txt"))
		}
	}
}
