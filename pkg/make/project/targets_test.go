package project

import (
	"os"
	"path/filepath"
	"testing"

	"slipway.build/pkg/mechanism/action"
)

func TestOriginOfTheTargets(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	expect := func(when string, wantRuns bool, want action.Origin) {
		t.Helper()
		if runs, program := Targets(root); runs != wantRuns || program != want {
			t.Errorf("%s: runs %v, origin %q, want %v, %q", when, runs, program, wantRuns, want)
		}
	}
	expect("without targets", false, action.Built)
	program, fetched := filepath.Join(root, TargetsProgram), filepath.Join(root, TargetsFetched)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	expect("with others", false, action.Built)
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil { // as where the tree's path has links
		t.Fatal(err)
	}
	expect("compiled here", true, action.Built)
	if err := os.WriteFile(fetched, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	expect("fetched", true, action.Cached)
}
