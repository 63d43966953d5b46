package catalog

import (
	"path"
	"slices"
	"strings"

	gomodule "golang.org/x/mod/module"
)

// A Binary is a program: a main package, or a package's tests, compiled.
type Binary struct {
	Name string `json:"name" file:"required"` // of the file, without ".exe"

	// The module that it is compiled in: the components' or another project's.
	Module     string `json:"module" file:"optional"` // a folder below the root, slash-separated; left out: the components'
	ModulePath string `json:"modulePath"`             // its path in go.mod

	// One of the two is set, as declared: "./kubectl" in the module, or a dependency's import path.
	Package string `json:"package,omitempty" file:"optional"`
	Test    string `json:"test,omitempty" file:"optional"`

	Stamp  string     `json:"stamp,omitempty" file:"optional"`  // a variable of another project, set to the version of its module
	Sets   []Set      `json:"sets,omitempty" file:"optional"`   // the sets whose tarballs hold it
	Folder string     `json:"folder,omitempty" file:"optional"` // in these tarballs; empty: SET/bin
	Only   []Platform `json:"only,omitempty" file:"optional"`   // if not empty: for these platforms alone
}

// IsTest reports whether the binary is compiled by `go test -c` and not by `go build`.
func (b Binary) IsTest() bool { return b.Test != "" }

// ImportPath returns the import path of the package, which the Go command finds in the binary's module.
func (b Binary) ImportPath() string {
	if dir, ok := b.local(); ok {
		return path.Join(b.ModulePath, dir)
	}
	return b.Package + b.Test
}

// GoName returns the name, without ".exe", that the Go command gives the file of a package when it compiles into a folder. It may
// differ from the binary's name.
func GoName(pkg string, test bool) string {
	name := path.Base(pkg)
	if prefix, major, ok := gomodule.SplitPathVersion(pkg); ok && strings.HasPrefix(major, "/") {
		name = path.Base(prefix) // the Go command never names a program v2
	}
	if test {
		name += ".test"
	}
	return name
}

// In reports whether a set's tarballs hold the binary.
func (b Binary) In(set Set) bool { return slices.Contains(b.Sets, set) }

// FolderIn returns the folder in which a set's tarballs have the binary.
func (b Binary) FolderIn(set Set) string {
	if b.Folder != "" {
		return b.Folder
	}
	return string(set) + "/bin"
}

// local returns the package's folder in the binary's module, if it is a package of that module.
func (b Binary) local() (dir string, ok bool) { return strings.CutPrefix(b.Package+b.Test, "./") }

func (b Binary) allows(p Platform) bool { return len(b.Only) == 0 || slices.Contains(b.Only, p) }

// Default returns the binaries that are built when none is named: the components of the server, node and client sets.
func (c *Catalog) Default() []Binary {
	return c.binaries(func(b Binary) bool { return c.IsComponent(b) && (b.In(Server) || b.In(Node) || b.In(Client)) })
}

// BinariesFor returns the binaries that a set's tarball for a platform holds: none if the set is not released for it.
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
