// Package golist reads lists of packages that `go list -deps -json` prints, and finds who imports whom.
//
// # What must never be in here
//
// Running the go command. What packages are for.
package golist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Packages are packages by their import paths.
type Packages map[string]*Package

// A Package is what a list says of a package.
type Package struct {
	ImportPath string
	Imports    []string
	Module     *struct {
		Path, Version string
		Replace       *struct{ Path, Version string }
	}
}

// Version returns the version of the code of a package's module: that of another module, if it is replaced by one.
func (p *Package) Version() string {
	if p.Module.Replace != nil && p.Module.Replace.Version != "" {
		return p.Module.Replace.Version
	}
	return p.Module.Version
}

// Read reads a list, or several of them joined.
func Read(r io.Reader) (Packages, error) {
	all := Packages{}
	for d := json.NewDecoder(r); ; {
		p := &Package{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("list of packages: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// Chain returns the shortest chain of imports from a package to one of a module, both included. It is empty if there is none.
func (all Packages) Chain(from, module string) []string {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		p := all[queue[0]]
		if p == nil {
			continue
		}
		if p.Module != nil && p.Module.Path == module {
			var chain []string
			for name := p.ImportPath; name != ""; name = before[name] {
				chain = append(chain, name)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range p.Imports {
			if _, seen := before[next]; !seen {
				before[next] = p.ImportPath
				queue = append(queue, next)
			}
		}
	}
	return nil
}
