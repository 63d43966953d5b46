package target

import (
	"path"

	"slipway.build/pkg/make/debrpm"
	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/stamp"
)

// A Package is a deb or an rpm for a platform.
type Package struct {
	catalog.Package
	Format   debrpm.Format
	On       catalog.Platform
	Binaries []*Binary
	Licenses []*Group // that its binaries belong to
}

func (t *Package) ID() string { return t.spec().ID() }

// Needs lists what the package is made of.
func (t *Package) Needs() []Target {
	needs := append(targets(t.Binaries), &Sources{})
	for _, g := range t.Licenses {
		needs = append(needs, &LicenseTexts{g}, &LicenseNames{g})
	}
	return needs
}

// spec returns what does not depend on the project.
func (t *Package) spec() debrpm.Spec {
	of := t.Deb
	if t.Format == debrpm.RPM {
		of = t.RPM
	}
	relations := t.With(of)
	s := debrpm.Spec{
		Format: t.Format, Name: t.Name, GOARCH: t.On.Arch, Homepage: t.Homepage, Summary: t.Summary, Description: t.Description,
		Folders: t.Folders, Requires: relations.Requires, Recommends: relations.Recommends, Conflicts: relations.Conflicts,
		Scripts: debrpm.Scripts{
			PreInstall: script(t.Scripts.PreInstall), PostInstall: script(t.Scripts.PostInstall),
			PreRemove: script(t.Scripts.PreRemove), PostRemove: script(t.Scripts.PostRemove),
		},
	}
	for _, bin := range t.Binaries {
		s.Binaries = append(s.Binaries, debrpm.Binary{From: bin.Path, To: t.installed(bin)})
	}
	for _, g := range t.Licenses {
		texts := debrpm.Texts{Tar: (&LicenseTexts{g}).tar()}
		for _, bin := range t.Binaries {
			if bin.Module == g.Binaries[0].Module {
				texts.Programs = append(texts.Programs, bin.Path)
			}
		}
		s.Licenses = append(s.Licenses, texts)
		s.LicenseNames = append(s.LicenseNames, (&LicenseNames{g}).path())
	}
	return s
}

// installed returns the path of a binary on the machines of users.
func (t *Package) installed(bin *Binary) string { return t.Package.Path(bin.Name) }

func script(name string) string {
	if name == "" {
		return ""
	}
	return path.Join(sources, catalog.PackageFolder, name)
}

// complete returns the spec, and the name of the file in the release's folder.
func (t *Package) complete(b *Build) (s debrpm.Spec, name string, err error) {
	s = t.spec()
	s.Version, s.Release, s.Commit = packageVersion(t.Version, b.Stamp.Version), b.Stamp.Version, b.Stamp.Commit
	s.Time, s.Maintainer = b.Stamp.Date.UTC(), b.Catalog.Maintainer
	for _, suffix := range []string{"", "." + string(t.Format)} {
		if folder := path.Join(catalog.PackageFolder, t.Name+suffix) + "/"; Has(b.Project, folder) {
			s.Trees = append(s.Trees, path.Join(sources, folder)+"/")
		}
	}
	file, err := s.File()
	if err != nil {
		return s, "", err
	}
	name = path.Join(release.PackageFolder, file)
	s.Output, s.SHA512 = path.Join(project.Tars, name), path.Join(project.Sums512, name)
	return s, name, nil
}

// packageVersion returns the version of a package in a release. That of another project's program has the release's after its own: another
// release compiles the same version with another Go, and no two packages may have one version.
func packageVersion(own, release string) string {
	if own == "" {
		return stamp.ForPackages(release)
	}
	return stamp.ForPackages(own) + "+" + stamp.ForPackages(release)
}

// Actions makes the package.
func (t *Package) Actions(b *Build) ([]*action.Action, error) {
	s, _, err := t.complete(b)
	if err != nil {
		return nil, err
	}
	return one(debrpm.Action(b.Root, b.ArchiveCache(), s))
}

// Describe adds the package.
func (t *Package) Describe(b *Build, d *describe.Spec) {
	s, name, err := t.complete(b)
	if err != nil {
		return // as Actions says
	}
	arch, _ := s.Arch()
	a := release.Artifact{
		Name: name, Path: name, Kind: release.Deb, Platform: t.On, MediaType: debType, Action: t.ID(),
		Identity: &release.Identity{Name: s.Name, Version: s.Version + "-" + debrpm.Revision, Arch: arch},
	}
	if t.Format == debrpm.RPM {
		a.Kind, a.MediaType = release.RPM, rpmType
	}
	for _, bin := range t.Binaries {
		a.Of = append(a.Of, bin.Artifact())
		a.Members = append(a.Members, release.Member{Path: t.installed(bin)[1:], Artifact: bin.Artifact()})
	}
	d.AddFile(a, s.Output, s.SHA512)
	d.Release.BasePackages = release.BasePackages(b.Catalog.BasePackages)
}
