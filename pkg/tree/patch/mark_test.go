package patch

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// memory is a tree in memory.
type memory map[string]string

func (m memory) ReadFile(name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func TestConflictIsMarkedWhereTheFileIsMostLikeTheHunk(t *testing.T) {
	t.Parallel()
	p, err := Parse("0001-three.patch", []byte(`diff --git a/numbers.txt b/numbers.txt
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
`))
	if err != nil {
		t.Fatal(err)
	}
	o := NewOverlay(&Repository{Places: []Place{{Module: "example.com/numbers"}}}, memory{
		"numbers.txt": "zero\none\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten",
	})
	marked, leftOut, err := o.Mark(p)
	if err != nil || !slices.Equal(marked, []string{"numbers.txt"}) || !slices.Equal(leftOut, []string{"gone.txt"}) {
		t.Fatalf("marked %v, left out %v, %v", marked, leftOut, err)
	}
	const want = `zero
one
<<<<<<< what is there
2
||||||| what the patch expects there
two
=======
TWO
>>>>>>> 0001-three.patch
three
four
five
six
seven
eight
<<<<<<< what is there
nine
ten
||||||| what the patch expects there
nine
ten
=======
NINE
ten
>>>>>>> 0001-three.patch
`
	if got := string(o.changes["numbers.txt"].Data); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(o.changes["new.txt"].Data); got != "new\n" {
		t.Errorf("what applies is %q", got)
	}
}

// A renamed file has the markers under its new name, unless there is another file.
func TestConflictInARenamedFileIsMarkedUnderItsNewName(t *testing.T) {
	t.Parallel()
	p, err := Parse("0001-rename.patch", []byte(`diff --git a/old.txt b/new.txt
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
`))
	if err != nil {
		t.Fatal(err)
	}
	repository := &Repository{Places: []Place{{Module: "example.com/numbers"}}}
	o := NewOverlay(repository, memory{"old.txt": "one\n2\nthree\n"})
	marked, leftOut, err := o.Mark(p)
	if err != nil || !slices.Equal(marked, []string{"new.txt"}) || len(leftOut) > 0 {
		t.Fatalf("marked %v, left out %v, %v", marked, leftOut, err)
	}
	changes := o.Changes()
	if want := "one\n<<<<<<< what is there\n2\n"; !changes["old.txt"].Removed || !strings.HasPrefix(string(changes["new.txt"].Data), want) {
		t.Errorf("changes %+v", changes)
	}
	o = NewOverlay(repository, memory{"old.txt": "one\n2\nthree\n", "new.txt": "another\n"})
	if marked, leftOut, err = o.Mark(p); err != nil || len(marked) > 0 || !slices.Equal(leftOut, []string{"new.txt"}) || len(o.Changes()) > 0 {
		t.Errorf("with another file: marked %v, left out %v, %v, %d changes", marked, leftOut, err, len(o.Changes()))
	}
}
