package patching

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestAddAndDrop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	add := func(name, text, want string) {
		t.Helper()
		a, err := w.Add(t.Context(), name, []byte(text), false)
		if err != nil || a.Patch != "patches/"+want {
			t.Errorf("add %s: %+v, %v; want %s", name, a, err, want)
		}
	}
	fails := func(name, text, want string) {
		t.Helper()
		if _, err := w.Add(t.Context(), name, []byte(text), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("add %s: %v, want %q", name, err, want)
		}
	}
	add("", bare, "0001-change-new.sh.patch")
	add("some/where/0001-One.diff", strings.ReplaceAll(conflicting, "Two = 0", "Two = 2"), "0002-One.patch")
	add("", strings.NewReplacer("Two = 0", "Two = 22", "Two = 22", "Two = 222").Replace(conflicting), "0003-change-kubelet.go.patch")
	before := w.patches()
	fails("again.patch", bare, "patches/0001-change-new.sh.patch is this patch already")
	fails("", conflicting, "hunk 1 of 1")
	fails("", "hello\n", "patch on standard input: changes no file")
	if !maps.Equal(before, w.patches()) {
		t.Error("a patch that does not apply was added")
	}

	if _, err := w.Drop(t.Context(), "0002", false); err == nil || !strings.Contains(err.Error(),
		"without 0002-One.patch: patch patches/0003-change-kubelet.go.patch does not apply") {
		t.Errorf("drop: %v", err)
	}
	if _, err := w.Drop(t.Context(), "change", false); err == nil || !strings.Contains(err.Error(), "means several patches") {
		t.Errorf("drop: %v", err)
	}
	if _, err := w.Drop(t.Context(), "0003-change-kublet.go.patch", false); err == nil ||
		!strings.Contains(err.Error(), "did you mean 0003-change-kubelet.go.patch?") {
		t.Errorf("drop: %v", err)
	}
	for _, name := range []string{"patches/0003-change-kubelet.go.patch", "One"} {
		if _, err := w.Drop(t.Context(), name, false); err != nil {
			t.Error(err)
		}
	}
	if got := slices.Sorted(maps.Keys(w.patches())); !slices.Equal(got, []string{"0001-change-new.sh.patch"}) {
		t.Errorf("patches: %v", got)
	}
	if _, err := w.Drop(t.Context(), "", true); err == nil || len(w.patches()) != 1 {
		t.Errorf("drop without a name: %v, %v", err, w.patches())
	}
}

func TestFilesAreNamedInTheOrderOfTheCommits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, want string }{
		{"+Ä new: one!", "0001-new-one.patch"},
		{"0001-a.patch 0002-b.patch +c", "0001-a.patch 0002-b.patch 0003-c.patch"},
		{"0001-a.patch 0005-b.patch +c", "0001-a.patch 0005-b.patch 0006-c.patch"},
		{"0001-a.patch +c 0005-b.patch", "0001-a.patch 0002-c.patch 0005-b.patch"},
		{"0001-a.patch +c 0002-b.patch", "0001-a.patch 0002-c.patch 0003-b.patch"},
		{"0002-b.patch 0001-a.patch", "0001-b.patch 0002-a.patch"},
		{"a.patch b.patch", "a.patch b.patch"},
		{"a.patch +b", "0001-a.patch 0002-b.patch"},
		{"+" + strings.Repeat("long ", 20), "0001-" + strings.TrimRight(strings.Repeat("long-", 10), "-") + "-lo.patch"},
		{"+...", "0001-patch.patch"},
	} {
		var files []file
		words := strings.Fields(tt.have)
		if strings.HasPrefix(tt.have, "+") {
			words = []string{tt.have}
		}
		for _, word := range words {
			title, isNew := strings.CutPrefix(word, "+")
			f := file{name: word, was: word, title: title}
			if isNew {
				f.name, f.was = "", ""
			}
			files = append(files, f)
		}
		name(files)
		var got []string
		for _, f := range files {
			got = append(got, f.name)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.have, got, tt.want)
		}
	}
}

func TestInvalidPatchOfAnotherProjectBlocksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write(t, w.abs("images/etcd/patches/0001-bad.patch"), "no patch\n")
	w.patch("0001-script.patch", bare)
	if e := w.edit(); e.Patches != 1 {
		t.Errorf("edited: %+v", e)
	}
}
