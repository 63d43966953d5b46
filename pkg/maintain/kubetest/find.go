package kubetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/module"
)

// A Request says which packages to test, by the module in which go test runs.
type Request struct {
	Upstream []string            // patterns for the components' module: Kubernetes' packages and its own
	Tree     map[string][]string // patterns of the tree's other modules: folders ("./pkg/..."), by the module's folder
}

// InTree returns a request for the words that name folders of the tree, and the words that do not. It needs no Sources.
func InTree(root, components string, words []string) (r Request, outside []string, err error) {
	r.Tree = map[string][]string{}
	for _, word := range words {
		folder, rest := cutPattern(strings.TrimPrefix(word, "./"))
		if !filepath.IsLocal(filepath.FromSlash(folder)) {
			return r, nil, badrequest.Mark(fmt.Errorf("%s: name a folder in the tree or an import path", word))
		}
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder))); err != nil || !info.IsDir() {
			outside = append(outside, word)
			continue
		}
		dir, err := moduleOf(root, folder)
		if err != nil {
			return r, nil, err
		}
		below, err := filepath.Rel(dir, folder)
		if err != nil {
			return r, nil, err
		}
		pattern := "./" + path.Join(filepath.ToSlash(below), rest)
		if dir == path.Clean(components) {
			r.Upstream = append(r.Upstream, pattern)
		} else {
			r.Tree[dir] = append(r.Tree[dir], pattern)
		}
	}
	return r, outside, nil
}

// moduleOf returns the folder of the module that a folder of the tree lies in.
func moduleOf(root, folder string) (string, error) {
	for at := path.Clean(folder); ; at = path.Dir(at) {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(at), "go.mod"))
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == "." {
			return "", fmt.Errorf("%s is in no module: %w", folder, err)
		}
	}
}

// Find returns a request for words as users of Kubernetes' make write them: folders of the tree ("./cmd/widget/..."), import paths
// ("k8s.io/client-go/rest"), and paths in upstream's repository, with older spellings ("pkg/scheduler/...", "./staging/src/k8s.io/api",
// "vendor/k8s.io/api"). A folder of the tree comes first. The error joins a *suggest.UnknownError for each word that names nothing.
func (s *Sources) Find(words []string) (Request, error) {
	r, outside, err := InTree(s.Root, s.Components, words)
	if err != nil {
		return r, err
	}
	mod, err := module.Load(s.Root, s.Components)
	if err != nil {
		return r, err
	}
	var unknown []error
	for _, word := range outside {
		pattern, ok := s.resolve(mod, word)
		if !ok {
			unknown = append(unknown, s.unknown(word))
			continue
		}
		r.Upstream = append(r.Upstream, pattern)
	}
	return r, errors.Join(unknown...)
}

// resolve returns the import path, or the pattern of import paths, that a word names.
func (s *Sources) resolve(mod *module.Module, word string) (string, bool) {
	name, rest := cutPattern(word)
	name = strings.TrimPrefix(strings.TrimPrefix(name, "./"), "vendor/")
	if own, inside := strings.CutPrefix(name+"/", mod.Path+"/"); inside {
		return path.Join(name, rest), isFolder(mod.Dir, path.Clean(own))
	}
	if _, dir, ok := s.module(name); ok {
		return path.Join(name, rest), isFolder(s.Repository, dir)
	}
	if name == "k8s.io" && rest != "" { // every module of Kubernetes and some others: it has no folder
		return "", false
	}
	if first, _, _ := strings.Cut(name, "/"); strings.Contains(strings.TrimPrefix(first, "."), ".") {
		_, ok := mod.Provider(name) // of another module: the go command knows whether it has that package
		return path.Join(name, rest), ok
	}
	if !isFolder(s.Repository, name) {
		return "", false
	}
	pkg, ok := s.importPath(name)
	return path.Join(pkg, rest), ok
}

// unknown returns the error for a word that names nothing.
func (s *Sources) unknown(word string) error {
	name, _ := cutPattern(word)
	name = strings.TrimPrefix(strings.TrimPrefix(name, "./"), "vendor/")
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		name = path.Join(upstream.Kubernetes, name)
	}
	e := suggest.Unknown("package", word, nil)
	e.Near = suggest.Near(name, s.tested())
	for _, m := range s.Missing {
		if name == m.Path || strings.HasPrefix(name, m.Path+"/") {
			return fmt.Errorf("%w: %s", e, m)
		}
	}
	return e
}

// tested lists the import paths of the repository's packages with tests.
func (s *Sources) tested() []string {
	var all []string
	_ = filepath.WalkDir(s.Repository, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil // what cannot be read is not suggested
		}
		if rel, err := filepath.Rel(s.Repository, filepath.Dir(name)); err == nil {
			if pkg, ok := s.importPath(filepath.ToSlash(rel)); ok {
				all = append(all, pkg)
			}
		}
		return nil
	})
	return slices.Compact(all)
}

// cutPattern splits "a/b/..." into the folder and the rest, which is empty or begins with "...".
func cutPattern(word string) (folder, rest string) {
	if i := strings.Index(word, "..."); i >= 0 {
		folder, rest = word[:i], word[i:]
		if !strings.HasSuffix(folder, "/") && folder != "" { // "a/b..."
			folder, rest = path.Dir(folder), path.Base(folder)+rest
		}
		return path.Clean(folder), rest
	}
	return path.Clean(word), ""
}

// isFolder reports whether a slash-separated folder exists below another.
func isFolder(root, folder string) bool {
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder)))
	return err == nil && info.IsDir()
}
