package catalog

import (
	"errors"
	"path"
	"slices"
	"strings"
	"unicode"

	"slipway.build/pkg/mechanism/suggest"
)

// Match returns the binaries that the words of WHAT name, each once, in the catalog's order. Without words it returns none.
//
// A word is a binary's name, its folder ("cmd/kubectl", "./cmd/kubectl/"), its import path, or one of upstream's
// spellings: below vendor/ or staging/src/, or relative to its repository ("test/e2e/e2e.test"). Another project's folder
// ("images/etcd") names all its binaries, and "cmd/..." everything below. The error joins a *suggest.UnknownError for each word that
// names nothing.
func (c *Catalog) Match(what string) ([]Binary, error) {
	words := strings.Fields(what)
	known := make([]bool, len(words))
	found := c.binaries(func(b Binary) bool {
		named := false
		for i, word := range words {
			if b.named(word, c.Module) {
				named, known[i] = true, true
			}
		}
		return named
	})

	var errs []error
	for i, word := range words {
		if !known[i] && !slices.Contains(words[:i], word) {
			errs = append(errs, c.unknownBinary(word))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return found, nil
}

// Platforms returns the platforms that KUBE_BUILD_PLATFORMS names, separated by spaces or commas, each once, in the
// order of AllPlatforms. For an empty string it returns none. The error joins a *suggest.UnknownError for each that is in no set.
func (c *Catalog) Platforms(words string) ([]Platform, error) {
	all := c.AllPlatforms()
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}

	var errs []error
	wanted := strings.FieldsFunc(words, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, word := range wanted {
		if !slices.Contains(names, word) && !slices.Contains(wanted[:i], word) {
			errs = append(errs, &suggest.UnknownError{Kind: "platform", Name: word, Near: suggest.Near(word, names)})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p Platform) bool { return !slices.Contains(wanted, p.String()) }), nil
}

// named reports whether a word of WHAT names the binary; module is the folder of the components' module.
func (b Binary) named(word, module string) bool {
	word = path.Clean(word)
	if dir, ok := strings.CutSuffix(word, "..."); ok && (dir == "" || strings.HasSuffix(dir, "/")) {
		return slices.ContainsFunc(b.spellings(module), func(s string) bool { return strings.HasPrefix(s+"/", dir) })
	}
	return slices.Contains(b.spellings(module), word)
}

// spellings returns every clean path that names the binary.
func (b Binary) spellings(module string) []string {
	paths := []string{b.ImportPath()}
	dir, local := b.local()
	switch {
	case b.Module != module:
		paths = append(paths, b.Module)
		if local {
			paths = append(paths, path.Join(b.Module, dir))
		}
	case local:
		// Upstream has it in cmd/, or, if it is an API server of its own, as a staging module.
		staged := "k8s.io/" + dir
		paths = append(paths, dir, path.Join(module, dir), "cmd/"+dir, "k8s.io/kubernetes/cmd/"+dir,
			staged, "vendor/"+staged, "staging/src/"+staged)
	default:
		paths = append(paths, "vendor/"+b.ImportPath(), "staging/src/"+b.ImportPath())
	}
	if rest, ok := strings.CutPrefix(b.ImportPath(), "k8s.io/kubernetes/"); ok {
		paths = append(paths, rest)
	}
	if b.IsTest() {
		for _, p := range slices.Clone(paths) {
			paths = append(paths, path.Join(p, b.Name))
		}
	}
	return append(paths, b.Name)
}

func (c *Catalog) unknownBinary(word string) error {
	typed := path.Base(strings.TrimSuffix(path.Clean(word), "/..."))
	return &suggest.UnknownError{Kind: "component", Name: word, Near: suggest.Near(typed, c.names())}
}
