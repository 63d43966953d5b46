package catalog

import (
	"regexp"
	"slices"
)

func (c *checker) checkBinaries(binaries []declaredBinary) {
	var names []text
	for _, d := range binaries {
		names = append(names, d.name)
		c.catalog.Binaries = append(c.catalog.Binaries, c.checkBinary(d))
	}
	c.once("binary", names)
	c.checkGoNames(binaries)
}

// checkGoNames checks that no two binaries are one file when they are compiled together: all main packages of a module are for
// a platform, and all tests, into a folder in which the Go command gives the names.
func (c *checker) checkGoNames(binaries []declaredBinary) {
	if c.unsure {
		return
	}
	type file struct {
		module   string
		name     string
		test     bool
		platform Platform
	}
	first := map[file]int{} // index of the binary
	for i, b := range c.catalog.Binaries {
		if b.Package == "" == (b.Test == "") {
			continue // which was reported
		}
		for _, p := range c.catalog.PlatformsOf(b) {
			f := file{b.Module, GoName(b.ImportPath(), b.IsTest()), b.IsTest(), p}
			other, taken := first[f]
			if !taken {
				first[f] = i
				continue
			}
			c.add(binaries[i].line, "binary %s: the Go command calls it %s, as it does binary %s on line %d, and both are for %s",
				b.Name, f.name, c.catalog.Binaries[other].Name, binaries[other].line, p)
			break
		}
	}
}

// A binary's name is a file's, on every system.
var fileName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func (c *checker) checkBinary(d declaredBinary) Binary {
	b := Binary{Name: d.name.value, Package: d.pkg.value, Test: d.test.value, Stamp: d.stamp.value, Folder: d.folder.value}
	if b.Name != "" && !fileName.MatchString(b.Name) {
		c.add(d.name.line, "%q is not a name for a binary: letters, digits, and .-_ between them", b.Name)
	}
	m := c.modules[c.catalog.Module]
	if d.module.value != "" {
		m = c.module(d.module)
	}
	if m != nil {
		b.Module, b.ModulePath = m.name, m.path
	}
	c.checkPackage(d, m)
	c.checkStamp(d, m)
	c.checkFolder(d)
	for _, t := range c.once("set", d.sets) {
		set, ok := c.set(t)
		if !ok {
			continue
		}
		b.Sets = append(b.Sets, set)
		if _, declared := c.catalog.Sets[set]; !declared && !c.unsure {
			c.add(t.line, "binary %s: set %s has no platforms in this file", b.Name, set)
		}
	}
	b.Only = c.platforms(d.only)
	c.checkOnly(d, b)
	return b
}

func (c *checker) checkPackage(d declaredBinary, m *module) {
	pkg := d.pkg
	switch {
	case d.pkg.line != 0 && d.test.line != 0:
		c.add(d.line, "binary %s has both a package and a test", d.name.value)
		return
	case d.pkg.line == 0 && d.test.line == 0:
		c.add(d.line, "binary %s has neither a package nor a test", d.name.value)
		return
	case d.test.line != 0:
		pkg = d.test
	}
	if pkg.value == "" || m == nil {
		return
	}
	if err := m.find(pkg.value, d.test.line != 0); err != nil {
		c.add(pkg.line, "binary %s: %v", d.name.value, err)
	}
}

// A variable is what the linker's -X sets: an import path, a dot, a name.
var variable = regexp.MustCompile(`^[A-Za-z0-9._~/-]+\.[\pL_][\pL\pN_]*$`)

func (c *checker) checkStamp(d declaredBinary, m *module) {
	switch {
	case d.stamp.value == "":
	case m != nil && m.name == c.catalog.Module:
		c.add(d.stamp.line, "binary %s: stamp is for other projects; components have the release's version", d.name.value)
	case !variable.MatchString(d.stamp.value):
		c.add(d.stamp.line, "binary %s: %q is not a variable like example.com/project/version.Version", d.name.value, d.stamp.value)
	case m != nil && d.pkg.value != "" && m.version(d.pkg.value) == "":
		c.add(d.stamp.line, "binary %s: its package is in %s itself, which has no version", d.name.value, m.name)
	}
}

// checkFolder checks where tarballs have a binary. Two of one name cannot be, as all binaries differ in their names.
func (c *checker) checkFolder(d declaredBinary) {
	switch {
	case d.folder.value == "":
	case !isFolder(d.folder.value):
		c.add(d.folder.line, "binary %s: %q is not a folder below a tarball's top, written with slashes", d.name.value, d.folder.value)
	case d.sets == nil:
		c.add(d.folder.line, "binary %s has a folder, but is in no set whose tarballs could have it", d.name.value)
	}
}

// checkOnly checks that each platform of `only` narrows something.
func (c *checker) checkOnly(d declaredBinary, b Binary) {
	if d.sets == nil && d.only == nil {
		c.add(d.line, "binary %s has neither sets nor only, so there is no platform for it", b.Name)
	}
	if c.unsure || len(b.Sets) < len(d.sets) {
		return // which platforms it could have is not known
	}
	possible := c.catalog.PlatformsOf(Binary{Sets: b.Sets})
	for _, t := range d.only {
		p, err := ParsePlatform(t.value)
		if err != nil || slices.Contains(possible, p) {
			continue
		}
		if len(b.Sets) == 0 {
			c.add(t.line, "binary %s: only %s, but no set has that platform", b.Name, p)
			continue
		}
		c.add(t.line, "binary %s: only %s, but none of its sets has that platform", b.Name, p)
	}
}
