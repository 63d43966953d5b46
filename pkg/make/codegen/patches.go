package codegen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/patch"
)

// A ForPatches updates generated code where patches change its sources. It is a [patched.Generator]. A patch needs only what people write;
// generated code in it is generated again and comes out the same.
type ForPatches struct {
	Root       string // of the tree
	Components string // the folder of the module that requires Kubernetes
	GoVersion  string // of the pinned Go
}

var _ patched.Generator = ForPatches{}

// Recipe identifies the generators. It is empty where the tree has none, as in some tests.
func (f ForPatches) Recipe() string {
	key, err := toolsKey(f.Root, f.GoVersion)
	if err != nil {
		return ""
	}
	return code.String() + " " + key
}

// Affects reports whether files have changed that code may be generated from.
func (f ForPatches) Affects(changes map[string]patch.Change) bool {
	_, err := os.Stat(filepath.Join(f.Root, filepath.FromSlash(Module), "go.mod"))
	return err == nil && len(touched(changes)) > 0
}

// touched returns the folders, sorted, with changed packages or protocol buffer messages.
func touched(changes map[string]patch.Change) []string {
	found := map[string]bool{}
	for name := range changes {
		if strings.HasPrefix(name, "vendor/") { // what is linked comes with its generated code
			continue
		}
		if isCode(path.Base(name)) || path.Base(name) == protoFile {
			found[path.Dir(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Generate runs the generators for the packages in which a patched tree changes declarations, and for those that import them. What comes
// out differently becomes a change of the tree.
func (f ForPatches) Generate(ctx context.Context, t patched.Tree, report func(doing string)) error {
	repo, err := upstream.Open(ctx, t.Go, f.Root, f.Components, upstream.Kubernetes)
	if err != nil {
		return err
	}
	original, err := index(repo)
	if err != nil {
		return err
	}
	changes := t.Changes()
	for name, c := range changes {
		if isCode(path.Base(name)) && !c.Removed && !strings.HasPrefix(name, "vendor/") {
			original.add(path.Dir(name), path.Base(name), c.Data) // imports and markers that were there before stay
		}
	}
	maps.DeleteFunc(changes, func(name string, c patch.Change) bool {
		was, err := t.Unpatched(name)
		return err == nil && !c.Removed && isCode(path.Base(name)) && sameDeclarations(was, c.Data)
	})
	affected := original.importers(touched(changes), importPath)
	if !slices.ContainsFunc(original.marked("", nil), func(dir string) bool { return affected[dir] }) && !hasBindings(changes) {
		return nil
	}
	tools, err := NewTools(ctx, f.Root, t.Go, report)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(t.Tmp, "generate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "kubernetes")
	report("putting the repository of Kubernetes together")
	if err := repo.Copy(ctx, dir); err != nil {
		return err
	}
	r := &Repository{Dir: dir, Tools: tools, Progress: func(text string) { report("generating " + text) }}
	return r.regenerate(ctx, affected, t)
}

// regenerate updates the generated code of affected packages for a patched tree.
func (r *Repository) regenerate(ctx context.Context, affected map[string]bool, t patched.Tree) error {
	if err := r.apply(t.Changes()); err != nil {
		return err
	}
	before, err := r.times()
	if err != nil {
		return err
	}
	if err := r.Generate(ctx, nil, affected); err != nil {
		return err
	}
	return r.collect(before, t)
}

// hasBindings reports whether protocol buffer messages changed.
func hasBindings(changes map[string]patch.Change) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(changes)), func(name string) bool { return path.Base(name) == protoFile })
}

// apply writes a patched tree's changes into the repository. Those of files that are in no module have no place in it.
func (r *Repository) apply(changes map[string]patch.Change) error {
	for name, c := range changes {
		file := r.path(name)
		if c.Removed {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err := write(file, c.Data); err != nil {
			return err
		}
	}
	return nil
}

// times returns when the files that generators may write were written.
func (r *Repository) times() (map[string]time.Time, error) {
	times := map[string]time.Time{}
	files, err := filesBelow(r.Dir, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if ext := path.Ext(name); ext != ".go" && ext != ".proto" {
			continue
		}
		info, err := os.Lstat(r.path(name))
		if err != nil {
			return nil, err
		}
		times[name] = info.ModTime()
	}
	return times, nil
}

// collect adds to a tree what generators have written or removed since the times before.
func (r *Repository) collect(before map[string]time.Time, t patched.Tree) error {
	after, err := r.times()
	if err != nil {
		return err
	}
	for name, written := range after {
		if was, ok := before[name]; ok && was.Equal(written) {
			continue
		}
		data, err := os.ReadFile(r.path(name))
		if err != nil {
			return err
		}
		if old, err := t.ReadFile(name); err == nil && bytes.Equal(old, data) {
			continue
		}
		t.Set(name, patch.Change{Data: data})
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Set(name, patch.Change{Removed: true})
		}
	}
	return nil
}

// index returns what is imported and marked in the unpatched repository. That takes seconds, so it is kept in the user's cache folder.
func index(repo *upstream.Repository) (sources, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(cache, "slipway", "codegen", "index-"+digest(repo.Key()+code.String())+".json")
	found := sources{}
	if data, err := os.ReadFile(name); err == nil && json.Unmarshal(data, &found) == nil {
		return found, nil
	}
	found = sources{}
	for _, m := range repo.Modules {
		if err := found.scan(m.Source, m.Dir); err != nil {
			return nil, fmt.Errorf("read %s: %w", m.Path, err)
		}
	}
	data, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	return found, atomicfile.WriteFile(name, data, 0o644)
}
