package patched

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// A work is one application of the patches of a spec.
type work struct {
	root     string
	g        *toolchain.Go
	gen      Generator
	spec     Spec
	module   *module.Module
	repo     *patch.Repository
	progress func(string)

	patches []*patch.Patch
	reports []patch.Report
	overlay *patch.Overlay
	bases   map[string]*base // modules that were fetched, by path
}

// A base is a module to patch, with its files in the module cache.
type base struct {
	required module.Requirement
	code     module.Version // what is patched: the module, or the version that replaces it

	Dir, Zip, Info, GoMod, Sum string
}

// modules reads the modules of the repository in the module cache.
func (w *work) modules(ctx context.Context) patch.Modules {
	return patch.Modules{Repository: w.repo, Dir: func(p patch.Place) (string, error) {
		b, err := w.base(ctx, p.Module)
		if err != nil {
			return "", err
		}
		return b.Dir, nil
	}}
}

// base returns a module that the tree requires, fetched.
func (w *work) base(ctx context.Context, path string) (*base, error) {
	if b := w.bases[path]; b != nil {
		return b, nil
	}
	required, ok := w.module.Require(path)
	if !ok {
		return nil, fmt.Errorf("%s/go.mod does not require %s", w.module.Name, path)
	}
	if folder := required.Folder(); folder != "" {
		return nil, fmt.Errorf("%s/go.mod replaces %s by the folder %s, which patches do not reach: apply them there, or remove the replacement",
			w.module.Name, path, folder)
	}
	b := &base{required: required, code: required.Code()}
	if required.Sum == "" {
		return nil, fmt.Errorf("%s/go.sum has no sum of %s: write it with `go mod tidy` there", w.module.Name, b.code)
	}
	if !b.cached(w.g.ModCache) {
		w.progress("looking for " + b.code.String())
		if err := w.g.Fetch(ctx, []module.Pinned{{Version: b.code, Sum: required.Sum}}); err != nil {
			return nil, err
		}
		if !b.cached(w.g.ModCache) {
			return nil, fmt.Errorf("%s: the module cache lacks some of its files: remove it there (go clean -modcache)", b.code)
		}
	}
	w.bases[path] = b
	return b, nil
}

// cached fills in the rest if the module cache has all of the module, with the sum that the tree asks for.
func (b *base) cached(modCache string) bool {
	dir, err1 := b.code.CachePath()
	at, err2 := b.code.ProxyPath()
	if err1 != nil || err2 != nil {
		return false
	}
	downloads := filepath.Join(modCache, "cache", "download", filepath.FromSlash(at))
	sum, err := os.ReadFile(downloads + ".ziphash")
	if err != nil || strings.TrimSpace(string(sum)) != b.required.Sum {
		return false
	}
	if _, err := os.Stat(downloads + ".partial"); err == nil { // the go command is unpacking it, or was killed meanwhile
		return false
	}
	found := base{
		required: b.required, code: b.code, Sum: b.required.Sum,
		Dir: filepath.Join(modCache, filepath.FromSlash(dir)), Zip: downloads + ".zip", Info: downloads + ".info", GoMod: downloads + ".mod",
	}
	for _, name := range []string{found.Dir, found.Zip, found.Info, found.GoMod} {
		if _, err := os.Stat(name); err != nil {
			return false
		}
	}
	*b = found
	return true
}

// generate updates generated code if the patches change its sources.
func (w *work) generate(ctx context.Context, tmp string) error {
	if w.gen == nil || w.spec.Project != "" || !w.gen.Affects(w.overlay.Changes()) {
		return nil
	}
	return w.gen.Generate(ctx, Tree{w.overlay, w.g, tmp}, w.progress)
}

// write writes the proxy, go.mod, go.sum and the list, as outputs of a task.
func (w *work) write(ctx context.Context, t *action.Task) (*List, error) {
	to := func(name string) string { return t.Path(w.spec.file(name)) }
	list := &List{Patches: w.spec.Patches}
	var err error
	if list.From, err = module.Digest(w.module.Dir); err != nil {
		return nil, err
	}
	changed := w.changedModules()
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		w.progress("patching " + name)
		m, err := w.patch(ctx, name, changed[name], t.Path(w.spec.file(Proxy)+"/"))
		if err != nil {
			return nil, fmt.Errorf("patch module %s: %w", name, err)
		}
		list.Modules = append(list.Modules, *m)
	}
	var replaced []module.Replacement
	sums := map[module.Version]string{}
	for _, m := range list.Modules {
		replaced = append(replaced, module.Replacement{Old: module.Version{Path: m.Path}, New: m.Patched})
		sums[m.Patched] = m.Sum
		sums[module.Version{Path: m.Patched.Path, Version: m.Patched.Version + "/go.mod"}] = m.ModSum
	}
	goMod, goSum, err := w.module.With(replaced, sums)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{to(ModFile): goMod, to(SumFile): goSum, to(ListFile): append(text, '\n')} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// changedModules returns the changes of each module by the paths of its files.
func (w *work) changedModules() map[string]map[string]patch.Change {
	found := map[string]map[string]patch.Change{}
	for name, c := range w.overlay.Changes() {
		in, file, why := w.repo.Locate(name)
		if why != "" {
			continue
		}
		if found[in.Module] == nil {
			found[in.Module] = map[string]patch.Change{}
		}
		found[in.Module][file] = c
	}
	return found
}

// patch makes a patched module, for a proxy and in the module cache.
func (w *work) patch(ctx context.Context, path string, changes map[string]patch.Change, proxy string) (m *Module, err error) {
	b, err := w.base(ctx, path)
	if err != nil {
		return nil, err
	}
	m = &Module{Path: path, Version: b.required.Version, Original: b.code}
	m.Patched = module.Version{Path: b.code.Path, Version: version(b.code.Version, w.patchesOf(path), contentOf(changes))}
	// Both mostly wait for the disk.
	both, ctx := errgroup.WithContext(ctx)
	var staged string
	both.Go(func() (err error) {
		staged, err = w.stage(b, m.Patched, changes)
		return err
	})
	both.Go(func() error { return w.publish(ctx, b, m, changes, proxy) })
	err = both.Wait()
	defer func() { err = errors.Join(err, removeStaged(staged)) }()
	if err != nil {
		return nil, err
	}
	return m, w.install(b, m, staged, proxy)
}

// publish writes the files of a patched module for a proxy, and fills in the sums.
func (w *work) publish(ctx context.Context, b *base, m *Module, changes map[string]patch.Change, proxy string) error {
	at, err := m.Patched.ProxyPath()
	if err != nil {
		return err
	}
	file := filepath.Join(proxy, filepath.FromSlash(at))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	sums := filepath.Join(w.root, "_output", ".slipway", "patches", "sums "+strings.ReplaceAll(b.code.String(), "/", "_"))
	if m.Sum, err = writeZip(ctx, file+".zip", b, m.Patched, changes, sums); err != nil {
		return err
	}
	goMod, err := os.ReadFile(b.GoMod)
	if err != nil {
		return err
	}
	if m.ModSum, err = module.SumOfGoMod(goMod); err != nil {
		return err
	}
	info, err := infoOf(b, m.Patched)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		file + ".mod": goMod, file + ".info": info, filepath.Join(filepath.Dir(file), "list"): []byte(m.Patched.Version + "\n"),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// patchesOf returns a digest, in hex, of the patches that touch a module: the SHA-256 of the only one, or of their list. What only a
// generator has changed is due to all.
func (w *work) patchesOf(module string) string {
	var sums []string
	for _, all := range []bool{false, true} {
		for _, r := range w.reports {
			touches := slices.ContainsFunc(w.repo.Changed(r.Patch), func(in patch.Place) bool { return in.Module == module })
			if r.Verdict == patch.Applies && (touches || all) {
				sums = append(sums, r.Patch.SHA256)
			}
		}
		if len(sums) > 0 {
			break
		}
	}
	if len(sums) == 1 {
		return sums[0]
	}
	sum := sha256.Sum256([]byte(strings.Join(sums, "\n")))
	return hex.EncodeToString(sum[:])
}

// contentOf returns a digest, in hex, of changes.
func contentOf(changes map[string]patch.Change) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c := changes[name]
		fmt.Fprintf(h, "%q %t %x\n", name, c.Removed, sha256.Sum256(c.Data))
	}
	return hex.EncodeToString(h.Sum(nil))
}
