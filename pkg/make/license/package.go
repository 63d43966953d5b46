package license

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/tree/module"
)

// A Package is a package in a list that the Go command printed.
type Package struct {
	ImportPath string
	Module     Module // without Sum and Dir
}

// A listed package is what a list says of a package: some of what `go list -json` prints. Folders are not part of it, so that the list is
// the same on every machine.
type listed struct {
	ImportPath string
	Standard   bool          `json:",omitempty"`
	Module     *listedModule `json:",omitempty"`
	Imports    []string      `json:",omitempty"`
}

// A listedModule is the module of a listed package.
type listedModule struct {
	Path    string
	Version string        `json:",omitempty"`
	Replace *listedModule `json:",omitempty"` // by which it is replaced
}

// condense copies a list of packages that `go list -json` printed, as far as it is the same on every machine.
func condense(w io.Writer, r io.Reader) error {
	to := json.NewEncoder(w)
	for from := json.NewDecoder(r); from.More(); {
		var p listed
		if err := from.Decode(&p); err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if err := to.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// Packages reads the output of `go list -deps -json=ImportPath,Module,Standard`, or several of them joined. It returns all
// packages but those of the standard library, sorted and without duplicates.
func Packages(r io.Reader) ([]Package, error) {
	var packages []Package
	for d := json.NewDecoder(r); d.More(); {
		var listed listed
		if err := d.Decode(&listed); err != nil {
			return nil, fmt.Errorf("license: list of packages: %w", err)
		}
		if listed.Standard {
			continue
		}
		name := ofFolder(listed.ImportPath)
		if name == "" {
			return nil, errors.New("license: list of packages: one has no ImportPath")
		}
		if listed.Module == nil {
			return nil, fmt.Errorf("license: list of packages: %s has no Module; list it with -json=ImportPath,Module,Standard", name)
		}
		var m Module
		m.Path, m.Version = listed.Module.Path, listed.Module.Version
		if r := listed.Module.Replace; r != nil {
			m.Replace = module.ReplacedBy(r.Path, r.Version)
		}
		packages = append(packages, Package{ImportPath: name, Module: m})
	}
	return tidy(packages), nil
}

// ofFolder returns the import path of a package's folder. A list made with -test has also "a/b [a/b.test]", the package
// compiled for its test, and "a/b_test [a/b.test]", the test outside of it.
func ofFolder(importPath string) string {
	name, test, _ := strings.Cut(importPath, " [")
	tested := strings.TrimSuffix(test, ".test]")
	if test != "" && name == tested+"_test" {
		return tested
	}
	return name
}

// tidy sorts packages, and drops duplicates and the main package "a/b.test", which the Go command makes up for the tests of
// "a/b".
func tidy(packages []Package) []Package {
	listed := make(map[string]bool, len(packages))
	for _, p := range packages {
		listed[p.ImportPath] = true
	}
	packages = slices.DeleteFunc(packages, func(p Package) bool {
		tested, ok := strings.CutSuffix(p.ImportPath, ".test")
		return ok && listed[tested]
	})
	slices.SortFunc(packages, func(a, b Package) int {
		return cmp.Or(strings.Compare(a.ImportPath, b.ImportPath), strings.Compare(a.Module.String(), b.Module.String()))
	})
	return slices.Compact(packages)
}

// folders returns the slash-separated folders of a module's packages and all folders above them, relative to the module's
// root, sorted. The root "." is always among them.
func folders(m Module, packages []Package) []string {
	set := map[string]bool{".": true}
	for _, p := range packages {
		rel := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, m.Path), "/")
		for dir := path.Clean(rel); !set[dir]; dir = path.Dir(dir) {
			set[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
