package catalog

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/relation"
	"slipway.build/pkg/mechanism/suggest"
)

// PackageFolder has the files of packages, in folders of their names, and their scripts.
const PackageFolder = "release/packages"

// A Package is a deb and an rpm for each Linux platform of the server set.
type Package struct {
	Name        string `json:"name" file:"required"`
	Summary     string `json:"summary" file:"required"`               // a line for people
	Description string `json:"description,omitempty" file:"optional"` // more of them
	Homepage    string `json:"homepage,omitempty" file:"optional"`    // https URL

	Binaries []string `json:"binaries,omitempty" file:"optional"` // of the server set
	Folder   string   `json:"folder,omitempty" file:"optional"`   // where it installs these; empty: /usr/bin
	Folders  []string `json:"folders,omitempty" file:"optional"`  // that it makes, though nothing may be in them

	Requires   []relation.Relation `json:"requires,omitempty" file:"optional"`
	Recommends []relation.Relation `json:"recommends,omitempty" file:"optional"`
	Conflicts  []relation.Relation `json:"conflicts,omitempty" file:"optional"`
	Deb        Relations           `json:"deb,omitzero" file:"optional"` // that the deb has besides
	RPM        Relations           `json:"rpm,omitzero" file:"optional"` // that the rpm has besides

	Scripts Scripts `json:"scripts,omitzero" file:"optional"`

	// Version is that of the module of its binaries, if all are another project's. Empty: the release's.
	Version string `json:"version,omitempty"`
}

// Relations are those of a package to others.
type Relations struct {
	Requires   []relation.Relation `json:"requires,omitempty" file:"optional"`
	Recommends []relation.Relation `json:"recommends,omitempty" file:"optional"`
	Conflicts  []relation.Relation `json:"conflicts,omitempty" file:"optional"`
}

// With returns the package's relations to others, with those of one format.
func (p Package) With(of Relations) Relations {
	return Relations{
		Requires:   slices.Concat(p.Requires, of.Requires),
		Recommends: slices.Concat(p.Recommends, of.Recommends),
		Conflicts:  slices.Concat(p.Conflicts, of.Conflicts),
	}
}

// BasePackages are names of packages that systems have, or find in their own repositories, by format.
type BasePackages struct {
	Deb []string `json:"deb,omitempty" file:"optional"`
	RPM []string `json:"rpm,omitempty" file:"optional"`
}

// Scripts are lines for a shell, in files of PackageFolder. The first two run at installs and upgrades, the others when a package is
// removed and no version of it follows.
type Scripts struct {
	PreInstall  string `json:"preinstall,omitempty" file:"optional"`
	PostInstall string `json:"postinstall,omitempty" file:"optional"`
	PreRemove   string `json:"preremove,omitempty" file:"optional"`
	PostRemove  string `json:"postremove,omitempty" file:"optional"`
}

// Path returns where the package installs a binary.
func (p Package) Path(binary string) string { return path.Join(cmp.Or(p.Folder, "/usr/bin"), binary) }

// PackagesFor returns the packages for a platform: those whose binaries are all for it.
func (c *Catalog) PackagesFor(p Platform) []Package {
	if p.OS != "linux" || !c.SetHas(Server, p) {
		return nil
	}
	isFor := func(name string) bool { b, _ := c.Binary(name); return slices.Contains(c.PlatformsOf(b), p) }
	var found []Package
	for _, pkg := range c.Packages {
		if !slices.ContainsFunc(pkg.Binaries, func(name string) bool { return !isFor(name) }) {
			found = append(found, pkg)
		}
	}
	return found
}

var (
	// A package's name is one that Debian and rpm accept. A dot would be that of NAME.deb.
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`)

	// Other people's packages have other names.
	basePackage = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]*$`)

	packageSummary = regexp.MustCompile(`^[^\n]{1,79}$`)
	maintainer     = regexp.MustCompile(`^[^<>\s][^<>\n]* <[^<>@\s]+@[^<>@\s]+>$`)
	absolute       = regexp.MustCompile(`^(/[A-Za-z0-9._@-]+)+$`)
	homepage       = regexp.MustCompile(`^https://[^\s/]+(/\S*)?$`)
)

func (c *checker) checkPackages() {
	first := map[string]int{}
	installed := map[string]string{} // package by file
	for i := range c.Packages {
		p := &c.Packages[i]
		c.checkDuplicate("package", p.Name, c.line(&p.Name), first)
		c.match(&p.Name, packageName, "a name for a package: two or more of a-z, 0-9, and - between them")
		c.match(&p.Summary, packageSummary, "a summary: a line of up to 79 characters")
		c.match(&p.Homepage, homepage, "the URL of a page like https://kubernetes.io")
		c.checkPackageFolders(p)
		once(c, "binary", p.Binaries)
		for j := range p.Binaries {
			c.checkPackageBinary(p, &p.Binaries[j], installed)
		}
		c.checkPackageScripts(p)
	}
	if len(c.Packages) > 0 && !c.has(&c.Maintainer) {
		c.add(c.line(&c.Packages), "packages need a maintainer, whom users can ask, as in maintainer: Acme <k8s@acme.example>")
	}
	c.match(&c.Maintainer, maintainer, "a name and an address like Acme <k8s@acme.example>")
	c.checkPackageFiles()
	c.checkBasePackages(c.BasePackages.Deb, first)
	c.checkBasePackages(c.BasePackages.RPM, first)
}

// checkBasePackages checks a list of base packages. Packages of the release are on lines.
func (c *checker) checkBasePackages(list []string, lines map[string]int) {
	once(c, "base package", list)
	for i := range list {
		if c.match(&list[i], basePackage, "the name of a package, in any version, like iptables"); lines[list[i]] > 0 {
			c.add(c.line(&list[i]), "base package %s is one of the release, on line %d: repositories must have it", list[i], lines[list[i]])
		}
	}
}

func (c *checker) checkPackageFolders(p *Package) {
	once(c, "folder", p.Folders)
	for _, folder := range append([]*string{&p.Folder}, pointers(p.Folders)...) {
		if c.match(folder, absolute, "an absolute folder like /opt/cni/bin"); path.Clean(*folder) != *folder && *folder != "" {
			c.add(c.line(folder), "%q is not a folder in its shortest form", *folder)
		}
	}
}

// pointers returns the addresses of the items of a list.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// checkPackageBinary checks that a binary is in the server set, whose license texts a package has, and that no other package has it in the
// same place. It sets the package's version.
func (c *checker) checkPackageBinary(p *Package, named *string, installed map[string]string) {
	b, ok := c.Binary(*named)
	file := p.Path(b.Name)
	switch {
	case *named == "":
		return
	case !ok:
		c.add(c.line(named), "%v", suggest.Unknown("binary", *named, c.names()))
		return
	case !b.In(Server):
		c.add(c.line(named), "package %s: binary %q is not in the server set, which packages are made of", p.Name, b.Name)
	case installed[file] != "":
		c.add(c.line(named), "package %s: %s is in package %s, too", p.Name, file, installed[file])
	}
	installed[file] = p.Name
	version := ""
	if m := c.modules[b.Module]; m != nil && !c.IsComponent(b) && b.Package != "" {
		version = m.Version(b.Package)
	}
	if named == &p.Binaries[0] {
		p.Version = version
	} else if p.Version != version {
		c.add(c.line(named), "package %s: binary %q has version %s, and another one in it %s; a package has one version", p.Name, b.Name,
			cmp.Or(version, "that of the release"), cmp.Or(p.Version, "that of the release"))
	}
}

func (c *checker) checkPackageScripts(p *Package) {
	for _, script := range []*string{&p.Scripts.PreInstall, &p.Scripts.PostInstall, &p.Scripts.PreRemove, &p.Scripts.PostRemove} {
		if *script == "" {
			continue
		}
		info, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(PackageFolder), filepath.FromSlash(*script)))
		if !isFolder(*script) || err != nil || !info.Mode().IsRegular() {
			c.add(c.line(script), "package %s: there is no file %s with a script", p.Name, path.Join(PackageFolder, *script))
		}
	}
}

// checkPackageFiles checks that each package has something, and that each folder of files is a package's.
func (c *checker) checkPackageFiles() {
	of := map[string]*Package{}
	var names []string
	for i := range c.Packages {
		p := &c.Packages[i]
		names = append(names, p.Name)
		of[p.Name], of[p.Name+".deb"], of[p.Name+".rpm"] = p, p, p
	}
	has := map[*Package]bool{}
	for _, folder := range folders(filepath.Join(c.root, filepath.FromSlash(PackageFolder))) {
		p := of[folder]
		if has[p] = true; p == nil {
			c.add(c.line(&c.Packages), "the folder %s is no package's: %v", path.Join(PackageFolder, folder),
				suggest.Unknown("package", strings.TrimSuffix(strings.TrimSuffix(folder, ".deb"), ".rpm"), names))
		}
	}
	for i := range c.Packages {
		if p := &c.Packages[i]; !has[p] && !c.has(&p.Binaries) && p.Name != "" {
			c.add(c.line(p), "package %s has neither binaries nor files in %s", p.Name, path.Join(PackageFolder, p.Name))
		}
	}
}
