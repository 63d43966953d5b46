package patching

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const two = "0001-Two.patch"

// written begins the patch in TestCommitsBecomePatches, on every machine.
const written = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: =?UTF-8?q?Jo=20=C3=84?= <jo@acme.example>
Date: Fri, 20 Nov 2026 23:53:00 +0100
Subject: [PATCH] Two

---
 pkg/kubelet.go                  | 2 +-
 staging/src/k8s.io/api/types.go | 2 +-
 2 files changed, 2 insertions(+), 2 deletions(-)

`

func TestCommitsBecomePatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.abs("patches/tools/fetch")
	write(t, script, "#!/bin/sh\n")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	if e := w.edit(); e.State != New || e.Version != "v1.99.1" {
		t.Errorf("edited: %+v", e)
	}
	w.change("staging/src/k8s.io/api/types.go", "{}", "{ Name string }")
	w.commit("Two", "pkg/kubelet.go", "Two = 2", "Two = 22")
	s := w.save()
	if !slices.Equal(s.Written, []string{"patches/" + two}) || s.Kept != nil || s.Removed != nil {
		t.Errorf("saved: %+v", s)
	}
	got := w.patches()
	if len(got) != 1 || !strings.HasPrefix(got[two], written) {
		t.Errorf("patches: %v", got)
	}
	if _, err := os.Stat(w.abs("patches/README.md")); err != nil {
		t.Error("what is no patch was removed:", err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("a script among the patches: %v, %v", info, err)
	}

	// Again: nothing to do, and the same commits on every machine.
	if s := w.save(); s.Written != nil || len(s.Kept) != 1 {
		t.Errorf("saved again: %+v", s)
	}
	id, tree := w.git("rev-parse", "v1.99.1"), w.git("rev-parse", "HEAD^{tree}")
	if e, err := w.Edit(t.Context(), true); err != nil || e.State != New || e.Patches != 1 {
		t.Errorf("edited: %+v, %v", e, err)
	}
	if again := w.git("rev-parse", "v1.99.1"); again != id {
		t.Errorf("upstream is commit %s, and then %s", id, again)
	}
	if again := w.git("rev-parse", "HEAD^{tree}"); again != tree {
		t.Errorf("the patched code is %s, and then %s", tree, again)
	}
	if s := w.save(); s.Written != nil || !maps.Equal(got, w.patches()) {
		t.Errorf("saved after laying out: %+v", s)
	}
}

// pullRequest has two commits, and the hash and signature that its service gave it.
const pullRequest = `From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: Kim <kim@acme.example>
Date: Thu, 1 Oct 2026 10:00:00 +0000
Subject: [PATCH 1/2] One is eleven

Because.
---
 pkg/kubelet.go | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/pkg/kubelet.go b/pkg/kubelet.go
index 1111111..2222222 100644
--- a/pkg/kubelet.go
+++ b/pkg/kubelet.go
@@ -1,6 +1,6 @@
 package pkg
 
 // One.
-const One = 1
+const One = 11
 
 // Two.

From 2222222222222222222222222222222222222222 Mon Sep 17 00:00:00 2001
From: Kim <kim@acme.example>
Date: Thu, 1 Oct 2026 11:00:00 +0000
Subject: [PATCH 2/2] A document, and five

---
 CHANGELOG/README.md | 1 +
 pkg/kubelet.go | 2 +-
 2 files changed, 2 insertions(+), 1 deletion(-)

diff --git a/CHANGELOG/README.md b/CHANGELOG/README.md
index 3333333..4444444 100644
--- a/CHANGELOG/README.md
+++ b/CHANGELOG/README.md
@@ -1,1 +1,2 @@
 # Changes
+More.
diff --git a/pkg/kubelet.go b/pkg/kubelet.go
index 3333333..4444444 100644
--- a/pkg/kubelet.go
+++ b/pkg/kubelet.go
@@ -22,4 +22,4 @@ const Four = 4
 const Four = 4
 
 // Five.
-const Five = 5
+const Five = 55
-- 
2.47.3

`

// bare is a diff without a message.
const bare = `diff --git a/hack/new.sh b/hack/new.sh
new file mode 100755
--- /dev/null
+++ b/hack/new.sh
@@ -0,0 +1 @@
+#!/bin/sh
`

func TestUnchangedPatchesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("10-pull.patch", pullRequest)
	w.patch("20-new-script.patch", bare)
	before := w.patches()
	e := w.edit()
	if e.Patches != 2 || len(e.PassedOver) != 1 || e.PassedOver[0].File != "CHANGELOG/README.md" {
		t.Errorf("edited: %+v", e)
	}
	const log = "One is eleven|Kim|2026-10-01T10:00:00+00:00|Because.\nA document, and five|Kim|2026-10-01T11:00:00+00:00|\n" +
		"new-script|slipway|1970-01-01T00:00:00+00:00|"
	if got := w.git("log", "--reverse", "--format=%s|%an|%aI|%b%-", "v1.99.1..HEAD"); strings.ReplaceAll(got, "\n\n", "\n") != log {
		t.Errorf("commits:\n%s\nwant\n%s", got, log)
	}
	if info, err := os.Stat(filepath.Join(w.Folder(), "hack", "new.sh")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("new.sh: %v, %v", info, err)
	}
	if s := w.save(); len(s.Kept) != 2 || s.Written != nil || !maps.Equal(before, w.patches()) {
		t.Errorf("saved: %+v", s)
	}

	// A commit before them moves their hunks.
	w.git("checkout", "-q", "v1.99.1")
	w.commit("First", "pkg/kubelet.go", "// Three.\n", "// It is more than two:\n// Three.\n")
	w.git("cherry-pick", "v1.99.1..main")
	s := w.save()
	if len(s.Kept) != 2 || !slices.Equal(s.Written, []string{"patches/0001-First.patch"}) {
		t.Errorf("saved: %+v", s)
	}
	if after := w.patches(); len(after) != 3 || after["10-pull.patch"] != pullRequest || after["20-new-script.patch"] != bare {
		t.Errorf("patches: %v", after)
	}

	// Part of it changes: then each commit has a file.
	w.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
	s = w.save()
	if !slices.Equal(s.Removed, []string{"patches/10-pull.patch"}) || !slices.Equal(s.Written, []string{"patches/0002-One-is-eleven.patch"}) {
		t.Errorf("saved: %+v", s)
	}
}

func TestAmendedCommitRewritesItsFileAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	w.commit("One", "pkg/kubelet.go", "One = 1", "One = 11")
	w.commit("Three", "pkg/kubelet.go", "Three = 3", "Three = 33")
	w.save()
	before := w.patches()

	w.git("checkout", "-q", "HEAD~1")
	w.change("pkg/kubelet.go", "One = 11", "One = 111")
	w.git("commit", "-q", "-a", "--amend", "-m", "One")
	w.git("cherry-pick", "main")
	s := w.save()
	if !slices.Equal(s.Written, []string{"patches/0001-One.patch"}) || !slices.Equal(s.Kept, []string{"patches/0002-Three.patch"}) {
		t.Errorf("saved: %+v", s)
	}
	if after := w.patches(); after["0002-Three.patch"] != before["0002-Three.patch"] || !strings.Contains(after["0001-One.patch"], "111") {
		t.Errorf("patches: %v", after)
	}

	// A commit between them needs a number.
	w.git("checkout", "-q", "HEAD~1")
	w.commit("Two", "pkg/old.go", "Size = 1", "Size = 2")
	w.git("cherry-pick", "main")
	s = w.save()
	if diff := cmp.Diff([]Renamed{{"patches/0002-Three.patch", "patches/0003-Three.patch"}}, s.Renamed); diff != "" ||
		!slices.Equal(s.Written, []string{"patches/0002-Two.patch"}) || w.patches()["0003-Three.patch"] != before["0002-Three.patch"] {
		t.Errorf("saved: %+v\n%s", s, diff)
	}
}

// git am leaves out what stands in brackets, and joins the lines of a title.
func TestUnusualTitleKeepsItsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	w.commit("One", "pkg/kubelet.go", "One = 1", "One = 11")
	w.commit("[release] Three\nis more", "pkg/kubelet.go", "Three = 3", "Three = 33")
	w.save()
	before := w.patches()
	w.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
	const three = "0002-release-Three-is-more.patch"
	if s := w.save(); !slices.Equal(s.Kept, []string{"patches/" + three}) || s.Renamed != nil || w.patches()[three] != before[three] {
		t.Errorf("saved: %+v", s)
	}
}

func TestWorkIsNeverLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	refused := func(what, want string, err error) {
		t.Helper()
		if bad := new(UnsavedError); !errors.As(err, &bad) || !strings.Contains(bad.What, want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	w.change("pkg/kubelet.go", "One = 1", "One = 11")
	if e := w.edit(); e.State != Kept || e.Unsaved != "1 file with changes that are not committed" {
		t.Errorf("edited: %+v", e)
	}
	_, err := w.Save(t.Context(), false)
	refused("save", "not committed", err)
	w.git("commit", "-q", "-a", "-m", "One")
	if e := w.edit(); e.Unsaved != "1 commit that is in no patch" || !strings.Contains(w.read("pkg/kubelet.go"), "11") {
		t.Errorf("edited: %+v", e)
	}
	_, err = w.Add(t.Context(), "x.patch", []byte(bare), false)
	refused("add", "in no patch", err)

	// The patches change under it, as by a git pull.
	w.patch("0005-script.patch", bare)
	_, err = w.Edit(t.Context(), false)
	refused("edit", "in no patch", err)
	w.save()
	if got := slices.Sorted(maps.Keys(w.patches())); !slices.Equal(got, []string{"0001-One.patch", "0005-script.patch"}) {
		t.Errorf("patches: %v", got)
	}
	if e := w.edit(); e.State != New || e.Patches != 2 {
		t.Errorf("edited: %+v", e)
	}
	w.patch("0005-script.patch", strings.Replace(bare, "/bin/sh", "/bin/bash", 1))
	w.commit("Two", "pkg/kubelet.go", "Two = 2", "Two = 22")
	_, err = w.Save(t.Context(), false)
	if changed := new(ChangedError); !errors.As(err, &changed) || changed.Patch != "patches/0005-script.patch" {
		t.Errorf("save: %v", err)
	}
	if _, err = w.Save(t.Context(), true); err != nil || len(w.patches()) != 3 || w.patches()["0005-script.patch"] != bare {
		t.Errorf("save: %v, %v", err, w.patches())
	}

	w.change("pkg/kubelet.go", "Five = 5", "Five = 55")
	w.git("stash", "--quiet")
	refused("stash", "a stash", w.Unsaved(t.Context()))
	if e := w.edit(); e.State != Kept || e.Unsaved != "a stash" {
		t.Errorf("edited: %+v", e)
	}
	w.git("stash", "drop", "--quiet")

	w.git("switch", "-q", "-c", "experiment")
	w.commit("Three", "pkg/kubelet.go", "Three = 3", "Three = 33")
	w.git("switch", "-q", "main")
	refused("another branch", "1 commit on other branches", w.Unsaved(t.Context()))
	w.git("branch", "-q", "-D", "experiment")
	w.git("checkout", "-q", "v1.99.1")
	if _, err := w.Save(t.Context(), false); err == nil || !strings.Contains(err.Error(), "on no branch") || len(w.patches()) != 3 {
		t.Errorf("save of upstream's version: %v, %v", err, w.patches())
	}
	w.git("switch", "-q", "main")

	other := filepath.Join(t.TempDir(), "mine")
	write(t, filepath.Join(other, "file"), "mine")
	w.Copy = other
	if _, err := w.Edit(t.Context(), true); err == nil || !strings.Contains(err.Error(), "is no copy") {
		t.Errorf("edit in a folder of the user's: %v", err)
	}
}

func TestHalfACopyIsNobodysWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	half := filepath.Join(filepath.Dir(w.Folder()), ".kubernetes.new")
	if err := os.Rename(w.Folder(), half); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(half, "file"), "half")
	if work, err := UnsavedWork(t.Context(), w.Root); err != nil || len(work) > 0 {
		t.Error(work, err)
	}
	w.edit()
	write(t, filepath.Join(w.Folder(), "file"), "mine")
	work, err := UnsavedWork(t.Context(), w.Root)
	if err != nil || len(work) != 1 || work[0].Project != w.Project || !strings.Contains(work[0].What, "1 file with changes") {
		t.Errorf("work in a copy: %v, %v", work, err)
	}
}

func TestUpstreamPatchKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patch("0001-there.patch", strings.Replace(strings.Replace(conflicting, "-const Two = 0", "-const Two = 1", 1),
		"+const Two = 22", "+const Two = 2", 1))
	before := w.patches()
	if e := w.edit(); e.Patches != 1 {
		t.Errorf("edited: %+v", e)
	}
	w.commit("One", "pkg/kubelet.go", "One = 1", "One = 11")
	if s := w.save(); len(s.Kept) != 1 || len(s.Written) != 1 || w.patches()["0001-there.patch"] != before["0001-there.patch"] {
		t.Errorf("saved: %+v", s)
	}
	w.git("commit", "-q", "--allow-empty", "-m", "Nothing")
	if _, err := w.Save(t.Context(), false); err == nil || !strings.Contains(err.Error(), "(Nothing) changes nothing") {
		t.Errorf("save: %v", err)
	}
}

func TestUpstreamPatchOfTwoCommitsIsOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mails string
	for _, twos := range [][]string{{"0", "1"}, {"1", "2"}} {
		mails += "From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001\nFrom: Kim <kim@acme.example>\n" +
			"Subject: [PATCH] Two is " + twos[1] + "\n\n---\n" +
			strings.NewReplacer("Two = 0", "Two = "+twos[0], "Two = 22", "Two = "+twos[1]).Replace(conflicting)
	}
	w.patch("0001-there.patch", mails)
	if e := w.edit(); e.Patches != 1 || e.Merged != nil || w.git("log", "--format=%s", "-2") != "Two is 1\nk8s.io/kubernetes v1.99.1" {
		t.Errorf("edited: %+v\n%s", e, w.git("log", "--stat"))
	}
	if s := w.save(); len(s.Kept) != 1 || s.Written != nil || w.patches()["0001-there.patch"] != mails {
		t.Errorf("saved: %+v", s)
	}
}

func TestSaveRefusesWhatNoPatchCanHold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"go.mod": {func(w *world) { w.commit("Require", "go.mod", "module", "// more\nmodule") }, `commit "Require" cannot be saved: `},
		"merge": {func(w *world) {
			w.git("checkout", "-q", "-b", "b")
			w.commit("B", "b.go", "", "package b")
			w.git("checkout", "-q", "main")
			w.commit("C", "c.go", "", "package c")
			w.git("merge", "-q", "b")
		}, "is a merge"},
		"no base": {func(w *world) { w.git("checkout", "-q", "--orphan", "o"); w.git("commit", "-q", "-m", "O") }, "do not begin at"},
		"no copy": {func(w *world) { _ = os.RemoveAll(w.Folder()) }, "no copy of k8s.io/kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.edit()
			tt.change(w)
			_, err := w.Save(t.Context(), false)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(w.patches()) != 0 {
				t.Errorf("got %v, want %q; patches: %v", err, tt.want, w.patches())
			}
		})
	}
}

func TestSaveTakesUnusualCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit()
	if err := os.Symlink("old.go", filepath.Join(w.Folder(), "pkg", "new.go")); err != nil {
		t.Fatal(err)
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "A link")
	if _, err := w.Save(t.Context(), false); err == nil || !strings.Contains(err.Error(), `commit "A link" cannot be saved: `) {
		t.Errorf("a commit without effect is saved: %v", err)
	}
	w.change("staging/src/k8s.io/api/types.go", "{}", "{ Name string }")
	w.git("commit", "-q", "-a", "--amend", "--no-edit")
	w.change("pkg/kubelet.go", "One = 1", "One = 0")
	w.git("commit", "-q", "-a", "--allow-empty-message", "-m", "")
	s := w.save()
	if !slices.Equal(s.Written, []string{"patches/0001-A-link.patch", "patches/0002-patch.patch"}) {
		t.Errorf("saved: %+v", s)
	}
	if len(s.PassedOver) != 1 || s.PassedOver[0].File != "pkg/new.go" || s.PassedOver[0].Why == "" {
		t.Errorf("passed over: %+v", s.PassedOver)
	}
}
