package patching

import (
	"strings"
	"testing"
)

// withLinked makes the tree require a module that is no part of Kubernetes.
func withLinked(w *world) {
	write(w.t, w.abs("cmd/go.mod"), "module slipway.build/cmd\n\ngo 1.26\n\nrequire (\n\texample.com/lib v1.0.0\n\tk8s.io/api v0.99.1\n"+
		"\tk8s.io/kubernetes v1.99.1\n)\n")
}

const inLib = "diff --git a/a/a.go b/a/a.go\n--- a/a/a.go\n+++ b/a/a.go\n@@ -1,3 +1,3 @@\n package a\n \n-const A = 1\n+const A = 2\n"

func TestLinkedModuleIsEditedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withLinked(w)
	w.Project = "example.com/lib"
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	w.patch("example.com/lib/0001-two.patch", inLib)
	w.patch("README.md", "Ours, too.")
	if e := w.edit(); e.Version != "v1.0.0" || e.Patches != 1 || !strings.HasSuffix(e.Copy, "/_output/edit/example.com_lib") {
		t.Errorf("%+v", e)
	}
	if text := w.read("a/a.go"); !strings.Contains(text, "A = 2") {
		t.Error(text)
	}
	w.commit("Three", "a/a.go", "A = 2", "A = 3")
	s := w.save()
	if len(s.Kept) != 1 || len(s.Written) != 1 || s.Written[0] != "patches/example.com/lib/0002-Three.patch" || s.Stale != "" {
		t.Errorf("%+v", s)
	}
	a, err := w.Add(t.Context(), "", []byte(strings.NewReplacer("= 1", "= 3", "= 2", "= 4").Replace(inLib)), false)
	if err != nil || a.Patch != "patches/example.com/lib/0003-change-a.go.patch" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := w.Drop(t.Context(), "0002", false); err == nil ||
		!strings.Contains(err.Error(), "patches/example.com/lib/0003-change-a.go.patch does not apply: a/a.go, hunk 1 of 1") {
		t.Error(err)
	}
	list, err := w.List(t.Context())
	if err != nil || len(list) != 3 || list[0].Project != "example.com/lib" || list[0].Files[0] != "a/a.go" || list[2].Verdict != "applies" {
		t.Errorf("%+v, %v", list, err)
	}
	if all, err := Projects(w.Root); err != nil || strings.Join(all, " ") != "example.com/lib k8s.io/kubernetes" {
		t.Errorf("%q, %v", all, err)
	}
}

// A patch of upstream's repository may hold hunks of vendored code. They apply after the patches of that module.
func TestVendoredCodeOfAPatchIsEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withLinked(w)
	w.patch("example.com/lib/0001-two.patch", inLib)
	vendored := strings.NewReplacer("a/a/", "a/vendor/example.com/lib/a/", "b/a/", "b/vendor/example.com/lib/a/", "= 1", "= 2", "= 2", "= 3").
		Replace(inLib)
	a, err := w.Add(t.Context(), "both.patch", []byte(bare+vendored), false)
	if err != nil || a.Verdict != "applies" || len(a.PassedOver) > 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	w.edit()
	if text := w.read("vendor/example.com/lib/a/a.go"); !strings.Contains(text, "A = 3") {
		t.Error(text)
	}
	w.change("hack/new.sh", "", "#!/bin/bash\n")
	w.git("commit", "-q", "-a", "--amend", "--no-edit")
	if s := w.save(); len(s.Written) != 1 {
		t.Errorf("%+v", s)
	}
	for name, text := range w.patches() {
		if !strings.Contains(text, "+const A = 3\n") || !strings.Contains(text, "/bin/bash") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestOnlyWhatIsLinkedIsPatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withLinked(w)
	for name, want := range map[string]string{
		"example.com/libs":     "cmd/go.mod requires no module example.com/libs; did you mean example.com/lib?",
		"k8s.io/api":           "k8s.io/api is of k8s.io/kubernetes itself",
		"etcd/example.com/lib": `unknown project "etcd"`,
	} {
		w.Project = name
		if err := w.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
