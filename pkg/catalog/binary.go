package catalog

import (
	"path"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"
)

// A Binary is a program: a main package, or a package's tests, compiled.
type Binary struct {
	Name string `json:"name"` // of the file, without ".exe"

	// One of the two is set, as declared: "./kubectl" in the components' module, or a dependency's import path.
	Package string `json:"package,omitempty"`
	Test    string `json:"test,omitempty"`

	ModulePath string     `json:"modulePath"`     // of the module that "./" stands for
	Sets       []Set      `json:"sets,omitempty"` // whose tarballs hold it
	Only       []Platform `json:"only,omitempty"` // if not empty: no other platform
}

// IsTest reports whether the binary is made by `go test -c` and not by `go build`.
func (b Binary) IsTest() bool { return b.Test != "" }

// ImportPath returns the import path of the package, which the Go command finds in the components' module.
func (b Binary) ImportPath() string {
	if dir, ok := b.local(); ok {
		return path.Join(b.ModulePath, dir)
	}
	return b.Package + b.Test
}

// GoName returns what the Go command calls the file of a package in a folder that -o names, without ".exe": not the
// binary's name.
func GoName(pkg string, test bool) string {
	name := path.Base(pkg)
	if prefix, major, ok := gomodule.SplitPathVersion(pkg); ok && strings.HasPrefix(major, "/") {
		name = path.Base(prefix) // the Go command does not call a program v2
	}
	if test {
		name += ".test"
	}
	return name
}

// In reports whether a set's tarballs hold the binary.
func (b Binary) In(set Set) bool { return slices.Contains(b.Sets, set) }

// local returns the package's folder in the components' module, if it is in there.
func (b Binary) local() (dir string, ok bool) { return strings.CutPrefix(b.Package+b.Test, "./") }

func (b Binary) allows(p Platform) bool { return len(b.Only) == 0 || slices.Contains(b.Only, p) }

// Default returns the binaries that are built when none is named: those of the server, node and client sets.
func (c *Catalog) Default() []Binary {
	return c.binaries(func(b Binary) bool { return b.In(Server) || b.In(Node) || b.In(Client) })
}

// BinariesFor returns what a set's tarball for a platform holds: nothing, if the set is not released for it.
func (c *Catalog) BinariesFor(set Set, p Platform) []Binary {
	if !c.SetHas(set, p) {
		return nil
	}
	return c.binaries(func(b Binary) bool { return b.In(set) && b.allows(p) })
}

// PlatformsOf returns the platforms that a binary can be built for.
func (c *Catalog) PlatformsOf(b Binary) []Platform {
	var platforms []Platform
	for _, p := range c.AllPlatforms() {
		inSet := len(b.Sets) == 0 || slices.ContainsFunc(b.Sets, func(s Set) bool { return c.SetHas(s, p) })
		if inSet && b.allows(p) {
			platforms = append(platforms, p)
		}
	}
	return platforms
}

func (c *Catalog) binaries(want func(Binary) bool) []Binary {
	var found []Binary
	for _, b := range c.Binaries {
		if want(b) {
			found = append(found, b)
		}
	}
	return found
}

func (c *Catalog) names() []string {
	names := make([]string, len(c.Binaries))
	for i, b := range c.Binaries {
		names[i] = b.Name
	}
	return names
}
