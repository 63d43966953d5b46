package target

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/license"
	"slipway.build/pkg/make/patched"
	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
)

// A Group is a number of binaries of one module for one platform, which share a list of packages, license texts, and the
// names of licenses.
type Group struct {
	Name     string
	On       catalog.Platform
	Binaries []*Binary
}

func (g *Group) id() string { return g.On.String() + " " + g.Name }
func (g *Group) group() license.Group {
	return license.Group{Name: g.Name, OS: g.On.OS, Arch: g.On.Arch}
}
func (g *Group) thirdParty(b *Build) bool           { return g.Binaries[0].thirdParty(b) }
func (g *Group) packages() string                   { return packageList(g.Name, g.On) }
func (g *Group) module(b *Build) (*goModule, error) { return b.module(g.Binaries[0].Module) }

func packageList(group string, on catalog.Platform) string {
	return path.Join(project.Stage, "packages", group, on.Dash()+".json")
}

// PackageLists returns a pattern, for filepath.Glob, of the lists of packages that binaries for a platform are compiled of, relative to the
// root. They are there once a release is.
func PackageLists(on catalog.Platform) string { return packageList("*", on) }

// texts says where the license texts of the group are.
func (g *Group) texts(b *Build, m *goModule) license.Texts {
	t := license.Texts{Declared: b.Catalog.Licenses.DeclaredModules()}
	if Has(b.Project, ownLicense) {
		t.Own = sources + "/" + ownLicense
	}
	if b.Gathered != "" && m.Name == b.Catalog.Module {
		t.Gathered = b.Gathered
	} else {
		t.Packages, t.Module, t.ModuleFiles, t.GoVersion = g.packages(), m.Name, m.inputs, b.Catalog.Go.Version
	}
	return t
}

// A PackageList lists the packages that the binaries of a group are compiled from.
type PackageList struct{ *Group }

func (t *PackageList) ID() string      { return "packages " + t.id() }
func (t *PackageList) Needs() []Target { return []Target{&PatchedModules{t.Binaries[0].Module}} }

// Actions lists the packages.
func (t *PackageList) Actions(b *Build) ([]*action.Action, error) {
	m, err := t.module(b)
	if err != nil || b.Gathered != "" {
		return nil, err
	}
	return one(license.ListAction(b.Root, b.Go, t.spec(b, m)))
}

// spec describes the list. Build information in a binary names modules only, and a license may lie in the folder of a package. The sources
// are not inputs: an edit below the imports must not make the Go command list everything again.
func (t *PackageList) spec(b *Build, m *goModule) license.ListSpec {
	c := b.compileSpec(t.On, m)
	c.LDFlags, c.Options.LDFlags, c.Options.GCFlags = "", "", "" // the list does not depend on these
	s := license.ListSpec{
		Group:       t.group(),
		Module:      m.Name,
		ModuleFiles: m.inputs,
		GoVersion:   b.Catalog.Go.Version,
		GoFlags:     b.Settings.Build.GoFlags,
		Flags:       c.BuildFlags(),
		Levels:      toolchain.Levels(),
		FIPS:        c.Options.FIPS,
		Output:      t.packages(),
	}
	for _, bin := range t.Binaries {
		if bin.IsTest() {
			s.Tests = append(s.Tests, bin.Test)
		} else {
			s.Mains = append(s.Mains, bin.Package)
		}
		s.Heads = append(s.Heads, m.Heads(cmp.Or(bin.Package, bin.Test)))
	}
	return s
}

// LicenseNames are the names of the licenses of everything that the binaries of a group link, for images and bills of materials.
type LicenseNames struct{ *Group }

func (t *LicenseNames) ID() string      { return "spdx " + t.id() }
func (t *LicenseNames) Needs() []Target { return []Target{&Sources{}, &PackageList{t.Group}} }
func (t *LicenseNames) path() string {
	return path.Join(project.Stage, "spdx", t.Name, t.On.Dash()+".json")
}

// Actions finds the names.
func (t *LicenseNames) Actions(b *Build) ([]*action.Action, error) {
	m, err := t.module(b)
	if err != nil {
		return nil, err
	}
	return one(license.NamesAction(b.Root, b.Go, license.NamesSpec{Group: t.group(), Texts: t.texts(b, m), Output: t.path()}))
}

// Describe adds the file with the names.
func (t *LicenseNames) Describe(_ *Build, d *describe.Spec) {
	d.Licenses = append(d.Licenses, t.path())
}

// Judged says where the names are, for package policy.
func (t *LicenseNames) Judged(b *Build) (policy.Group, error) {
	g := policy.Group{ID: t.ID(), Names: t.path(), Packages: t.packages()}
	m, err := t.module(b)
	if err != nil {
		return g, err
	}
	for _, bin := range t.Binaries {
		name := cmp.Or(bin.Package, bin.Test)
		if strings.HasPrefix(name, "./") {
			name = path.Join(m.Path, name)
		}
		g.Programs = append(g.Programs, policy.Program{Name: bin.Artifact(), Package: name})
	}
	return g, nil
}

// LicenseTexts is a tar of the texts of the licenses of everything that the binaries of a group link. It needs the binaries, since their
// build information names the modules.
type LicenseTexts struct{ *Group }

func (t *LicenseTexts) ID() string { return "licenses " + t.id() }
func (t *LicenseTexts) Needs() []Target {
	return append(targets(t.Binaries), &PackageList{t.Group}, &LicenseNames{t.Group}) // a release names the licenses, too
}

func (t *LicenseTexts) tar() string { return licenseFolder(t.Name, t.On) + ".tar" }

// Member returns the texts as a folder of a tarball.
func (t *LicenseTexts) Member(folder string) Member {
	return Member{Of: t, From: t.tar(), To: folder, Unpack: true}
}

func licenseFolder(name string, on catalog.Platform) string {
	return path.Join(project.Stage, "licenses", name, on.Dash())
}

// Actions gathers the texts of the modules that the binaries link.
func (t *LicenseTexts) Actions(b *Build) ([]*action.Action, error) {
	m, err := t.module(b)
	if err != nil {
		return nil, err
	}
	linked := license.ModulesSpec{Group: t.group(), Output: path.Join(project.Stage, "modules", t.Name, t.On.Dash()+".json")}
	for _, bin := range t.Binaries {
		linked.Binaries = append(linked.Binaries, bin.Path)
	}
	s := license.Spec{Group: t.group(), Texts: t.texts(b, m), Modules: linked.Output, Patches: b.patchesOf(m), Output: t.tar()}
	return []*action.Action{license.ModulesAction(b.Root, linked), license.Action(b.Root, b.Go, s)}, nil
}

// DebianLicenses are the names of the licenses of the Debian packages in a base.
type DebianLicenses struct{ *Packages }

func (t *DebianLicenses) ID() string      { return "spdx " + t.On.String() + " debian " + t.Base }
func (t *DebianLicenses) Needs() []Target { return []Target{t.Packages} }
func (t *DebianLicenses) spec() debian.LicenseSpec {
	return debian.LicenseSpec{Base: t.Packages.spec(), Output: path.Join(project.Stage, "spdx", "debian", t.Base, t.On.Dash()+".json")}
}

// Actions finds the names.
func (t *DebianLicenses) Actions(b *Build) ([]*action.Action, error) {
	return one(debian.LicenseAction(b.Root, t.spec()))
}

// Copyrights is a folder of the copyright files of Debian packages.
type Copyrights struct {
	Name string
	On   catalog.Platform
	Of   []*Packages
}

func (t *Copyrights) ID() string           { return "licenses " + t.On.String() + " " + t.Name }
func (t *Copyrights) Needs() []Target      { return targets(t.Of) }
func (*Copyrights) thirdParty(*Build) bool { return true }

func (t *Copyrights) folder() string { return licenseFolder(t.Name, t.On) }

// Member returns the files as a folder of a tarball.
func (t *Copyrights) Member(folder string) Member {
	return Member{Of: t, From: t.folder() + "/", To: folder}
}

// Add adds the packages in a base; nil adds none.
func (t *Copyrights) Add(p *Packages) {
	if p != nil && !slices.ContainsFunc(t.Of, func(other *Packages) bool { return other.Base == p.Base }) {
		t.Of = append(t.Of, p)
	}
}

// Actions gathers the files.
func (t *Copyrights) Actions(b *Build) ([]*action.Action, error) {
	s := debian.CopyrightSpec{Name: t.Name, OS: t.On.OS, Arch: t.On.Arch, Output: t.folder()}
	for _, p := range t.Of {
		s.Bases = append(s.Bases, p.spec())
	}
	return one(debian.CopyrightAction(b.Root, s))
}

// Gather fills dir with the license files of every module that the binaries of a group link. Bazel runs it in an action of its own, so it
// is no action of a graph: the patched modules must have been made.
func (g *Group) Gather(ctx context.Context, p *project.Project, dir string) error {
	b := NewBuild(p, &action.Graph{}, false)
	m, err := g.module(b)
	if err != nil {
		return err
	}
	if outside := m.FolderOutside(); outside != "" {
		return fmt.Errorf("%s/go.mod replaces a module with the folder %s, which is outside of the tree, so Bazel would not notice a change "+
			"of its license: move the folder into the tree, or use another road", m.Name, outside)
	}
	if m.patchAction != nil {
		if _, err := patched.Made(p.Root, patched.SpecOf(p.Patches[m.Name], m.Name)); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp("", "slipway-licenses-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	packages := filepath.Join(tmp, "packages.json")
	if err := license.ListPackages(ctx, packages, p.Root, p.Go, (&PackageList{g}).spec(b, m)); err != nil {
		return err
	}
	found, err := p.Go(ctx, nil)
	if err != nil {
		return err
	}
	source := license.Source{ModCache: found.ModCache, ModRoot: m.Dir, GOROOT: found.Root, Packages: packages}
	if err := license.Gather(ctx, dir, source); err != nil || m.patchAction == nil {
		return err
	}
	to := filepath.Join(dir, filepath.Dir(gatheredModFile))
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for _, file := range patched.SpecOf(p.Patches[m.Name], m.Name).Files() {
		if err := atomicfile.Copy(p.Abs(file), filepath.Join(to, path.Base(file))); err != nil {
			return err
		}
	}
	return nil
}
