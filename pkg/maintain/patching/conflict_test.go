package patching

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/tree/patch"
)

const conflicting = `diff --git a/pkg/kubelet.go b/pkg/kubelet.go
--- a/pkg/kubelet.go
+++ b/pkg/kubelet.go
@@ -4,5 +4,5 @@ package pkg
 const One = 1
 
 // Two.
-const Two = 0
+const Two = 22
 
`

func TestConflictIsResolvedInGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-conflict.patch", conflicting)
	w.patch("0002-script.patch", bare)
	_, err := w.Edit(t.Context(), false)
	stopped := new(StoppedError)
	if !errors.As(err, &stopped) || stopped.Copy != w.Folder() || !slices.Equal(stopped.Files,
		[]string{"pkg/kubelet.go"}) || stopped.Later != 1 {
		t.Fatalf("edit: %v, %+v", err, stopped)
	}
	if c := new(patch.Conflict); !errors.As(err, &c) || c.Patch != "patches/0001-conflict.patch" || c.Hunk != 1 ||
		c.Expected != "const Two = 0" || c.Found != "const Two = 2" {
		t.Errorf("conflict: %+v", c)
	}
	const marked = "// Two.\n<<<<<<< HEAD\nconst Two = 2\n||||||| constructed merge base\nconst Two = 0\n=======\n" +
		"const Two = 22\n>>>>>>> conflict\n"
	if got := w.read("pkg/kubelet.go"); !strings.Contains(got, marked) {
		t.Errorf("the file is\n%s", got)
	}
	if got := w.git("status", "--short"); got != "UU pkg/kubelet.go" {
		t.Errorf("status: %s", got)
	}

	// Neither command touches it.
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Conflict != nil || len(stopped.Files) != 1 {
		t.Errorf("edit again: %v", err)
	}
	if _, err := w.Save(t.Context(), false); err == nil || !strings.Contains(err.Error(), "git am in progress") {
		t.Errorf("save: %v", err)
	}
	w.change("pkg/kubelet.go", marked, "// Two.\nconst Two = 22\n")
	w.git("add", "pkg/kubelet.go")
	w.git("am", "--continue")
	if got := w.git("log", "--format=%s", "-2"); got != "script\nconflict" {
		t.Errorf("after the conflict was resolved, the last commits are\n%s", got)
	}
	if e := w.edit(); e.State != Kept || e.Patches != 2 || e.Unsaved != "resolved conflicts that are in no patch" {
		t.Errorf("the resolution is not in the patches, but edit says %+v", e)
	}
	s := w.save()
	if err := w.Unsaved(t.Context()); err != nil {
		t.Errorf("after save: %v", err)
	}
	if !slices.Equal(s.Written, []string{"patches/0001-conflict.patch"}) || !slices.Equal(s.Kept, []string{"patches/0002-script.patch"}) {
		t.Errorf("saved: %+v", s)
	}
	if e, err := w.Edit(t.Context(), true); err != nil || e.Patches != 2 {
		t.Errorf("edit: %v", err)
	}
}

func TestAbandonedConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-conflict.patch", conflicting)
	stopped := new(StoppedError)
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	w.git("am", "--abort")
	if _, err := w.Save(t.Context(), false); err == nil || !strings.Contains(err.Error(), "0001-conflict.patch is not in") {
		t.Errorf("save: %v", err)
	}
	w.git("switch", "-q", "-c", "experiment")
	w.commit("Three", "pkg/kubelet.go", "Three = 3", "Three = 33")
	w.git("switch", "-q", "main")
	if err := w.Unsaved(t.Context()); err == nil || !strings.Contains(err.Error(), "1 commit on other branches") {
		t.Errorf("unsaved: %v", err)
	}
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Conflict == nil {
		t.Errorf("edit: %v", err)
	}
	if got := w.git("log", "--format=%s", "-1", "experiment"); got != "Three" {
		t.Errorf("the other branch: %q", got)
	}
}

func TestEachConflictStopsGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-conflict.patch", conflicting)
	w.patch("0002-second.patch", strings.NewReplacer("Two = 0", "Two = 7", "Two = 22", "Two = 8").Replace(conflicting))
	w.patch("0003-script.patch", bare)
	stopped := new(StoppedError)
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Patch != "patches/0001-conflict.patch" ||
		stopped.Later != 2 {
		t.Fatalf("edit: %v", err)
	}
	w.git("checkout", "-q", "--theirs", "pkg/kubelet.go")
	w.git("add", "pkg/kubelet.go")
	repo, _, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Run(t.Context(), "am", "--continue"); err == nil {
		t.Fatal("the second patch applies")
	}
	if _, err := w.Edit(t.Context(), false); !errors.As(err, &stopped) || stopped.Patch != "patches/0002-second.patch" || stopped.Later != 1 ||
		!slices.Equal(stopped.Files, []string{"pkg/kubelet.go"}) {
		t.Errorf("edit: %v, %+v", err, stopped)
	}
	w.git("am", "--skip")
	if s := w.save(); !slices.Equal(s.Written, []string{"patches/0001-conflict.patch"}) ||
		!slices.Equal(s.Removed, []string{"patches/0002-second.patch"}) || !slices.Equal(s.Kept, []string{"patches/0003-script.patch"}) {
		t.Errorf("saved: %+v", s)
	}
}

// patchForOlder adds a patch for the version before, of which the module cache has the file.
func (w *world) patchForOlder() {
	w.t.Helper()
	download := w.Command(w.t.Context(), w.t.TempDir(), "", "", "mod", "download", "k8s.io/kubernetes@v1.99.0")
	if out, err := download.CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	w.patch("0001-size.patch", `From: Kim <kim@acme.example>
Date: Thu, 1 Oct 2026 10:00:00 +0000
Subject: [PATCH] Size

---
diff --git a/pkg/old.go b/pkg/old.go
index 4f37abf..0000001 100644
--- a/pkg/old.go
+++ b/pkg/old.go
@@ -3,7 +3,7 @@ package pkg
 // Old is ...
 const Old = 1
 
 // A note that came and went.
 
 // Size is in bytes.
-const Size = 1
+const Size = 2
`)
}

func TestThreeWayMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patchForOlder()
	e := w.edit()
	if !slices.Equal(e.Merged, []string{"patches/0001-size.patch"}) || !strings.Contains(w.read("pkg/old.go"),
		"as ever.\nconst Old = 1\n\n// Size is in bytes.\nconst Size = 2\n") {
		t.Errorf("edited: %+v\n%s", e, w.read("pkg/old.go"))
	}
	if s := w.save(); !slices.Equal(s.Written, []string{"patches/0001-size.patch"}) {
		t.Errorf("saved: %+v", s)
	}
	if list, err := w.List(t.Context()); err != nil || len(list) != 1 || list[0].Verdict != "applies" {
		t.Errorf("list: %+v, %v", list, err)
	}
}
