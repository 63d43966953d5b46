package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentHasNothingThatChangesABuild(t *testing.T) {
	t.Parallel()
	got := environment([]string{
		"PATH=/bin", "MAKEFLAGS=n", "MAKELEVEL=1", "MAGEFILE_VERBOSE=1", "KUBE_GIT_VERSION=v1", "GIT_DIR=x", "WHAT=cmd/kubectl",
		"DBG=1", "ROAD=local", "GOFLAGS=-v", "GOLDFLAGS=-s", "SOURCE_DATE_EPOCH=1", "GOPROXY=direct", "WHATEVER=1",
	})
	if diff := cmp.Diff([]string{"PATH=/bin", "GOPROXY=direct", "WHATEVER=1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEditIsOneLineAndNeverTheSame(t *testing.T) {
	t.Parallel()
	s := &sides{ours: t.TempDir(), theirs: t.TempDir()}
	const source = "package main\n\nfunc main() {}\n"
	marks := map[string]bool{}
	for _, clone := range []string{s.ours, s.ours, s.theirs} {
		dir := filepath.Join(clone, "cmd", edited)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "main.go")
		if _, err := os.Stat(name); err != nil {
			if err := os.WriteFile(name, []byte(source), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		mark, err := s.edit(clone)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line, ok := strings.CutPrefix(string(data), source+"\n")
		if !ok {
			line, ok = strings.CutPrefix(string(data), source)
		}
		if !ok || strings.Count(line, "\n") != 1 || !strings.Contains(line, `"`+mark+`"`) {
			t.Errorf("after edit %s: %s", mark, data)
		}
		marks[mark] = true
	}
	if len(marks) != 3 {
		t.Errorf("an edit was made twice: %v", marks)
	}
	if err := s.even(); err != nil {
		t.Fatal(err)
	}
	ours, err := sum(filepath.Join(s.ours, "cmd", edited, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := sum(filepath.Join(s.theirs, "cmd", edited, "main.go")); err != nil || theirs != ours {
		t.Errorf("the clones differ, %v", err)
	}
}
