package project

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// tree writes the tree of package plan's tests to a new folder.
func tree(t *testing.T) (root string) {
	t.Helper()
	ar, err := txtar.ParseFile("../plan/testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	if err := txtar.Write(ar, root); err != nil {
		t.Fatal(err)
	}
	return root
}

// environment returns an environment of the given variables and PATH.
func environment(set ...string) func(string) string {
	return func(key string) string {
		for i := len(set) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(set[i], key+"="); ok {
				return v
			}
		}
		if key == "PATH" {
			return os.Getenv(key)
		}
		return ""
	}
}

func open(t *testing.T, root string, env ...string) *Project {
	t.Helper()
	settings, err := SettingsFrom(environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), root, settings, environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
