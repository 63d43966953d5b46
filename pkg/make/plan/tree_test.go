package plan

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

var (
	linuxAMD64   = catalog.Platform{OS: "linux", Arch: "amd64"}
	linuxARM64   = catalog.Platform{OS: "linux", Arch: "arm64"}
	darwinARM64  = catalog.Platform{OS: "darwin", Arch: "arm64"}
	windowsAMD64 = catalog.Platform{OS: "windows", Arch: "amd64"}
)

// tree writes testdata/tree.txtar, with files replaced or added, to a new folder.
func tree(t *testing.T, files ...txtar.File) (root string) {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	ar.Files = slices.DeleteFunc(ar.Files, func(old txtar.File) bool {
		return slices.ContainsFunc(files, func(f txtar.File) bool { return f.Name == old.Name })
	})
	ar.Files = append(ar.Files, files...)
	root = t.TempDir()
	if err := txtar.Write(ar, root); err != nil {
		t.Fatal(err)
	}
	return root
}

func file(name, data string) txtar.File { return txtar.File{Name: name, Data: []byte(data)} }

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

func open(t *testing.T, root string, env ...string) *project.Project {
	t.Helper()
	settings, err := project.SettingsFrom(environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	p, err := project.Open(t.Context(), root, settings, environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func graph(t *testing.T, p *project.Project, req Request) *action.Graph {
	t.Helper()
	planned, err := New(context.Background(), p, req)
	if err != nil {
		t.Fatal(err)
	}
	return planned.Graph
}

// ids returns the IDs of a graph's actions, sorted.
func ids(g *action.Graph) []string {
	var ids []string
	for _, a := range g.Actions {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids
}

func find(t *testing.T, g *action.Graph, id string) *action.Action {
	t.Helper()
	i := slices.IndexFunc(g.Actions, func(a *action.Action) bool { return a.ID == id })
	if i < 0 {
		t.Fatalf("no action %q among %q", id, ids(g))
	}
	return g.Actions[i]
}

// plannable fails the test unless the graph could run: it has no cycle, no output that two actions make, and no input that neither
// exists nor is made.
func plannable(t *testing.T, g *action.Graph) {
	t.Helper()
	decisions, err := g.Plan(t.Context(), action.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(decisions) != len(g.Actions) {
		t.Errorf("%d of %d actions are planned in a fresh tree", len(decisions), len(g.Actions))
	}
}
