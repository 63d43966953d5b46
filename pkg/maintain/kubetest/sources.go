package kubetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/module"
)

// Folder is where the copy of upstream's repository and its go.mod are kept, relative to the root, and slash-separated.
const Folder = "_output/.slipway/test"

// A Tree says what to test.
type Tree struct {
	Root       string   // absolute
	Components string   // the module that requires Kubernetes, relative to the root
	Version    string   // of Kubernetes, for reports
	Tags       []string // build tags of a release
	Go         Go
	Generator  Generator // of code that patches change; may be zero
}

// Go runs the go command, as *toolchain.Go does.
type Go interface {
	Command(ctx context.Context, dir, goos, goarch string, args ...string) *exec.Cmd
}

// Sources are a tree's tests, in upstream's repository. Sources with only a Tree can run the tests of the tree's own modules.
type Sources struct {
	Tree
	Repository string            // upstream's repository: a copy that may be written to
	Modules    map[string]string // folders of Kubernetes' modules in the repository, slash-separated, by path
	Missing    []upstream.Missing

	originals map[string]string // folders of Kubernetes' modules as they are without patches, by path
	replaced  bool              // the repository is the user's own: a folder that replaces k8s.io/kubernetes in go.mod
	modfile   string            // for go's -modfile, relative to the components' folder; "" means their own go.mod
}

// Open finds the sources of a tree. It makes a copy of upstream's repository with the tree's patches, unless the copy has the
// current versions and patches. A patch that does not apply is an error. The caller must hold a lock on Folder: see package action.
//
// A folder that replaces k8s.io/kubernetes in go.mod is the user's own repository. Unit and integration tests run in it; command tests
// refuse to.
func Open(ctx context.Context, t Tree) (*Sources, error) {
	mod, err := module.Load(t.Root, t.Components)
	if err != nil {
		return nil, err
	}
	s := &Sources{Tree: t, Modules: map[string]string{}, originals: map[string]string{}}
	versions := map[string]string{}
	for _, r := range mod.Requires {
		versions[r.Path] = r.Version
	}
	if required, ok := mod.Require(upstream.Kubernetes); ok && required.Folder() != "" {
		if err := s.useFolder(mod, required.Folder()); err != nil {
			return nil, err
		}
		return s, s.link(versions)
	}
	repository, err := upstream.Open(ctx, t.Go, t.Root, t.Components, upstream.Kubernetes)
	if err != nil {
		return nil, err
	}
	for _, m := range repository.Modules {
		s.Modules[m.Path], s.originals[m.Path] = m.Dir, m.Source
		versions[m.Path] = cmp.Or(versions[m.Path], m.Version.Version)
	}
	s.Missing = repository.Missing
	change, err := t.change(mod)
	if err != nil {
		return nil, err
	}
	s.Repository, err = repository.Keep(ctx, filepath.Join(t.Root, filepath.FromSlash(Folder), "kubernetes"), change)
	if err != nil {
		return nil, err
	}
	if err := s.writeModfile(mod, repository); err != nil {
		return nil, err
	}
	return s, s.link(versions)
}

// links is a folder below Folder. In it, the paths that -trimpath writes into programs, such as k8s.io/kubernetes@v1.37.1/pkg, lead to the
// repository.
const links = "src"

// link makes these links. Since Bazel shortens paths, too, Kubernetes' test servers look for their files below TEST_SRCDIR/TEST_WORKSPACE.
func (s *Sources) link(versions map[string]string) error {
	root := filepath.Join(s.Root, filepath.FromSlash(Folder), links)
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for modulePath, dir := range s.Modules {
		name := filepath.Join(root, filepath.FromSlash(modulePath)+"@"+versions[modulePath])
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(s.Repository, filepath.FromSlash(dir)), name); err != nil {
			return err
		}
	}
	return nil
}

// useFolder makes the folder that replaces k8s.io/kubernetes the repository.
func (s *Sources) useFolder(mod *module.Module, folder string) error {
	s.Repository, s.replaced = folder, true
	if !filepath.IsAbs(folder) {
		s.Repository = filepath.Join(mod.Dir, filepath.FromSlash(folder))
	}
	s.Modules[upstream.Kubernetes] = "."
	for _, r := range mod.Replaces {
		dir := r.New.Path
		if r.New.Version == "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(mod.Dir, filepath.FromSlash(dir))
		}
		if rel, err := filepath.Rel(s.Repository, dir); r.New.Version == "" && err == nil && filepath.IsLocal(rel) {
			s.Modules[r.Old.Path] = filepath.ToSlash(rel)
		}
	}
	_, err := os.Stat(s.Repository)
	return err
}

// writeModfile writes the components' go.mod, with the copy's folders in place of Kubernetes' modules, and with the modules that only
// their tests require. All have the versions that the tree selects: upstream never requires higher ones.
func (s *Sources) writeModfile(mod *module.Module, repository *upstream.Repository) error {
	s.modfile = path.Join(strings.Repeat("../", strings.Count(path.Clean(s.Components), "/")+1), Folder, "go.mod")
	own := filepath.Join(mod.Dir, "go.mod")
	data, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(own, data, nil)
	if err != nil {
		return err
	}
	sums, err := sumsOf(filepath.Join(mod.Dir, "go.sum"))
	if err != nil {
		return err
	}
	required := map[string]bool{}
	for _, r := range mod.Requires {
		required[r.Path] = true
	}
	require := func(modulePath, version string) {
		if !required[modulePath] {
			required[modulePath] = true
			f.AddNewRequire(modulePath, version, true)
		}
	}
	for _, m := range repository.Modules { // patched modules are replaced already
		if err := f.AddReplace(m.Path, "", path.Join(path.Dir(s.modfile), "kubernetes", m.Dir), ""); err != nil {
			return err
		}
		require(m.Path, m.Version.Version)
	}
	for _, m := range repository.Modules {
		dir := filepath.Join(s.Repository, filepath.FromSlash(m.Dir))
		theirs, err := module.Load(dir, ".")
		if err != nil {
			return err
		}
		for _, r := range theirs.Requires {
			require(r.Path, r.Version)
		}
		for _, name := range []string{"go.sum", "go.work.sum"} {
			more, err := sumsOf(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			sums = append(sums, more...)
		}
	}
	f.Cleanup()
	text, err := f.Format()
	if err != nil {
		return err
	}
	slices.Sort(sums)
	name := filepath.Join(s.Root, filepath.FromSlash(Folder), "go.mod")
	if err := writeChanged(name, text); err != nil {
		return err
	}
	return writeChanged(filepath.Join(filepath.Dir(name), "go.sum"), []byte(strings.Join(slices.Compact(sums), "")))
}

// sumsOf returns the lines of a go.sum file, none if there is no such file.
func sumsOf(name string) ([]string, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.Collect(strings.Lines(string(data))), err
}

// writeChanged writes a file unless it has the content already: Go's caches compare its time.
func writeChanged(name string, data []byte) error {
	if old, err := os.ReadFile(name); err == nil && string(old) == string(data) {
		return nil
	}
	return atomicfile.WriteFile(name, data, 0o644)
}

// module returns the module of Kubernetes that a package's import path belongs to, and its folder in the repository.
func (s *Sources) module(pkg string) (modulePath, dir string, ok bool) {
	for candidate := pkg; candidate != "." && candidate != "/"; candidate = path.Dir(candidate) {
		if in, found := s.Modules[candidate]; found {
			return candidate, path.Join(in, strings.TrimPrefix(pkg, candidate)), true
		}
	}
	return "", "", false
}

// importPath returns the import path of a folder of the repository, if it lies in a module.
func (s *Sources) importPath(folder string) (string, bool) {
	rest := ""
	for dir := path.Clean(folder); ; dir = path.Dir(dir) {
		for modulePath, in := range s.Modules {
			if in == dir {
				return path.Join(modulePath, rest), true
			}
		}
		if dir == "." || dir == "/" {
			return "", false
		}
		rest = path.Join(path.Base(dir), rest)
	}
}

// Command prepares a run of the go command in the components' module, with upstream's repository in place of Kubernetes' modules. Empty
// goos and goarch mean the host.
func (s *Sources) Command(ctx context.Context, goos, goarch, verb string, flags ...string) *exec.Cmd {
	args := []string{verb}
	if s.modfile != "" {
		args = append(args, "-modfile="+filepath.FromSlash(s.modfile))
	}
	return s.Go.Command(ctx, filepath.Join(s.Root, filepath.FromSlash(s.Components)), goos, goarch, append(args, flags...)...)
}

// explain adds what the go command printed to an error.
func explain(what string, err error, stderr string) error {
	return fmt.Errorf("%s: %w: %s", what, err, strings.TrimSpace(stderr))
}
