//go:build integration

package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"slipway.build/pkg/make/gitsource"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/worktree/gittest"
)

// assemble puts upstream's repository together again from the modules of a version in the module cache, and commits it with the version's
// tag. It returns the repository's folder, and the modules that it consists of.
func assemble(t *testing.T, g *toolchain.Go, wanted []module.Pinned, version string) (dir string, modules []module.Pinned) {
	t.Helper()
	r := gittest.New(t)
	r.Git("config", "maintenance.auto", "false") // it would go on while the folder is removed
	for _, m := range wanted {
		at, err := m.CachePath()
		if err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(g.ModCache, filepath.FromSlash(at))
		if m.Sum == "" {
			continue // only its go.mod is here
		}
		modules = append(modules, m)
		to := r.Dir
		if m.Path != "k8s.io/kubernetes" {
			to = filepath.Join(r.Dir, "staging", "src", filepath.FromSlash(m.Path))
		}
		if err := copyModule(from, to); err != nil {
			t.Fatal(err)
		}
		if m.Path != "k8s.io/kubernetes" {
			if err := unpublish(to, module.Staging(version)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// No file is ignored or converted.
	if err := os.WriteFile(filepath.Join(r.Dir, ".git", "info", "attributes"), []byte("* -text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Git("add", "--all", "--force")
	r.Commit()
	r.Git("tag", "-a", "-m", version, version)
	slices.SortFunc(modules, func(a, b module.Pinned) int { return strings.Compare(a.Path, b.Path) })
	return r.Dir, modules
}

func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}

// unpublish makes a module's go.mod and go.sum what they are in upstream's repository: siblings have no version, and folders replace them.
func unpublish(dir, version string) error {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(f.Require) {
		if sibling, ok := strings.CutPrefix(r.Mod.Path, "k8s.io/"); ok && r.Mod.Version == version {
			err = errors.Join(err, f.AddRequire(r.Mod.Path, "v0.0.0"), f.AddReplace(r.Mod.Path, "", "../"+sibling, ""))
		}
	}
	if data, failed := f.Format(); err == nil && failed == nil {
		err = os.WriteFile(name, data, 0o644)
	}
	sums, failed := os.ReadFile(filepath.Join(dir, "go.sum"))
	if errors.Is(failed, fs.ErrNotExist) {
		return err
	}
	siblings := regexp.MustCompile(fmt.Sprintf(`(?m)^k8s\.io/[a-z-]+ %s(/go\.mod)? .*\n`, regexp.QuoteMeta(version)))
	return errors.Join(err, failed, os.WriteFile(filepath.Join(dir, "go.sum"), siblings.ReplaceAll(sums, nil), 0o644))
}

// The modules of upstream's repository at an unchanged tag have the sums that go.sum files have of them, from a module proxy.
func TestAnUnchangedTagHasTheSumsOfTheModuleProxy(t *testing.T) {
	cloneLane.join(t)
	root := filepath.Join("..", "..")
	c, err := catalog.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	g, err := toolchain.Find(t.Context(), toolchain.Pin{Version: c.Go.Version, Sums: c.Go.Sums}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := gitsource.Taken(root, c.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Fetch(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	dir, wanted := assemble(t, g, wanted, c.Kubernetes)
	found, err := gitsource.Find(t.Context(), gitsource.Request{Repository: dir})
	if err != nil {
		t.Fatal(err)
	}
	if found.Version != c.Kubernetes || !found.Tagged {
		t.Errorf("found %+v", found)
	}
	made, source, err := gitsource.Make(t.Context(), found.Source, found.Version, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(source.Tree) != 40 || len(made) < 30 {
		t.Errorf("made %d modules of the tree %q", len(made), source.Tree)
	}
	if diff := cmp.Diff(wanted, made); diff != "" {
		t.Errorf("(-module proxy +made):\n%s", diff)
	}
}
