package target

import (
	"cmp"
	"path"
	"slices"

	"slipway.build/pkg/make/describe"
	"slipway.build/pkg/make/image"
	"slipway.build/pkg/make/policy"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/catalog"
)

// An Image is an image for a platform.
type Image struct {
	catalog.Image
	On       catalog.Platform
	Binaries []*Binary
	Licenses []*LicenseNames // of what it holds
	Packages *Packages       // in its base; nil if there are none
}

func (t *Image) ID() string { return "image " + t.On.String() + " " + t.Image.File() }

// Needs lists what the image is made of.
func (t *Image) Needs() []Target {
	needs := append(targets(t.Binaries), &Sources{})
	needs = append(needs, targets(t.Licenses)...)
	if t.Packages != nil {
		needs = append(needs, t.Packages, &DebianLicenses{t.Packages})
	}
	return needs
}

// Judged says where the licenses of its Debian packages are named, for package policy. It reports whether it has such packages.
func (t *Image) Judged() (policy.Image, bool) {
	if t.Packages == nil {
		return policy.Image{}, false
	}
	of := &DebianLicenses{t.Packages}
	return policy.Image{ID: of.ID(), Names: of.spec().Output, Name: t.Artifact()}, true
}

// File returns the path of the docker archive, and its name among the results.
func (t *Image) File() (_, _ string) {
	return t.archivePath(), path.Join(t.On.Arch, t.Image.File()+".tar")
}

// Artifact returns the name of the docker archive in release.json.
func (t *Image) Artifact() string { return path.Join(t.On.String(), t.Image.File()+".tar") }

func (t *Image) archivePath() string {
	return path.Join(project.Images, t.On.Arch, t.Image.File()+".tar")
}
func (t *Image) tagPath() string {
	return path.Join(project.Images, t.On.Arch, t.Image.File()+".docker_tag")
}
func (t *Image) sha512Path() string { return path.Join(project.Sums512, t.Artifact()) }
func (t *Image) partPath() string {
	return path.Join(project.Stage, "images", t.On.Dash(), t.Image.File())
}

// Members returns the image as members of a tarball's folder: the docker archive, and the file with its tag that Kubernetes puts beside it.
func (t *Image) Members(folder string) []Member {
	return []Member{
		{Of: t, Artifact: t.Artifact(), From: t.archivePath(), To: path.Join(folder, path.Base(t.archivePath()))},
		{Of: t, From: t.tagPath(), To: path.Join(folder, path.Base(t.tagPath()))},
	}
}

// Actions makes the image. A component's image is labeled with the release's version, commit and date. A third-party image is
// labeled with those of its catalog entry, so that its digest stays the same from commit to commit.
func (t *Image) Actions(b *Build) ([]*action.Action, error) {
	s := image.Spec{
		Name: t.Image.File(),
		Program: image.Program{
			Title:      t.Title,
			User:       t.User,
			Entrypoint: t.Entrypoint,
			Arguments:  t.Arguments,
			SetUID:     t.SetUID,
			OS:         t.On.OS,
			Arch:       t.On.Arch,
			Version:    b.Stamp.Version,
			Revision:   b.Stamp.Commit,
			Created:    b.Stamp.Date.UTC(),
		},
		Base:        t.Base,
		Bases:       sources + "/images",
		Tag:         tagOf(b.Project, t.Image),
		ArchiveTags: archiveTags(b.Project, t.Image, t.On.Arch),
		Tags:        indexTags(b.Project, t.Image),
		Archive:     t.archivePath(),
		SHA512:      t.sha512Path(),
		DockerTag:   t.tagPath(),
		Part:        t.partPath(),
	}
	if t.Versioned() {
		s.Version, s.Revision, s.Source, s.Created = t.Version, t.Revision, t.Source, t.Created.UTC()
	}
	if b.Catalog.Go.FIPSEnvironment && len(t.Binaries) > 0 && b.HasFIPS(t.Binaries[0].Module) {
		s.Env = []string{release.FIPSMode}
	}
	for _, bin := range t.Binaries {
		s.Binaries = append(s.Binaries, image.Binary{Name: bin.Name, File: bin.Path})
	}
	if t.Packages != nil { // no SPDX expression names the licenses of Debian packages
		s.Packages = t.Packages.spec().Output
	} else {
		for _, l := range t.Licenses {
			s.LicenseNames = append(s.LicenseNames, l.path())
		}
	}
	return one(image.Action(b.Root, b.ArchiveCache(), s))
}

// Describe adds the image and its docker archive.
func (t *Image) Describe(b *Build, d *describe.Spec) {
	name := archiveTags(b.Project, t.Image, t.On.Arch)[0]
	im := describe.Image{Artifact: name, Part: t.partPath()}
	if t.Packages != nil {
		im.Packages = []debian.LicenseSpec{(&DebianLicenses{t.Packages}).spec()}
	}
	d.Images = append(d.Images, im)
	var of []string
	for _, bin := range t.Binaries {
		of = append(of, bin.Artifact())
	}
	d.Add(release.Artifact{Name: name, Kind: release.Image, Platform: t.On, Of: of, Action: t.ID()})
	d.AddFile(release.Artifact{
		Name: t.Artifact(), Kind: release.Archive, Platform: t.On, MediaType: tarType, Of: []string{name}, Action: t.ID(),
	}, t.archivePath(), t.sha512Path())
}

// A Layout is the OCI image layout of some images.
type Layout struct{ Images []*Image }

func (*Layout) ID() string        { return "image layout" }
func (t *Layout) Needs() []Target { return targets(t.Images) }

// Actions puts the layout together.
func (t *Layout) Actions(b *Build) ([]*action.Action, error) {
	s := image.LayoutSpec{Output: project.Layout}
	for _, im := range t.Images {
		s.Parts = append(s.Parts, im.partPath())
	}
	return one(image.LayoutAction(b.Root, s))
}

// Describe adds the indexes, each over all platforms of an image.
func (t *Layout) Describe(b *Build, d *describe.Spec) {
	d.Layout = project.Layout
	indexes := map[string]*release.Artifact{}
	var names []string
	for _, im := range t.Images {
		name := indexTags(b.Project, im.Image)[0]
		if indexes[name] == nil {
			indexes[name] = &release.Artifact{Name: name, Kind: release.Index, Action: t.ID()}
			names = append(names, name)
		}
		indexes[name].Of = append(indexes[name].Of, archiveTags(b.Project, im.Image, im.On.Arch)[0])
	}
	for _, name := range names {
		d.Add(*indexes[name])
	}
}

// Packages is a tar file of the Debian packages in a base of images, for a platform.
type Packages struct {
	Base string
	On   catalog.Platform
}

// PackagesOf returns the Debian packages in a base, or nil if it has none.
func (b *Build) PackagesOf(base string, on catalog.Platform) *Packages {
	if !b.HasPackages(base) {
		return nil
	}
	return &Packages{base, on}
}

func (t *Packages) ID() string           { return "debian " + t.On.String() + " " + t.Base }
func (*Packages) Needs() []Target        { return []Target{&Sources{}} }
func (*Packages) thirdParty(*Build) bool { return true }

func (t *Packages) spec() debian.Spec {
	return debian.Spec{
		Name:   t.Base,
		OS:     t.On.OS,
		Arch:   t.On.Arch,
		Dir:    path.Join(sources, "images", t.Base),
		Output: path.Join(project.Stage, "debian", t.Base, t.On.Dash()+".tar"),
	}
}

// Actions fetches and unpacks the packages.
func (t *Packages) Actions(b *Build) ([]*action.Action, error) {
	return one(debian.Action(b.Root, b.Settings.Debian, t.spec()))
}

// tagOf returns the tag of an image: its own, or the release's.
func tagOf(p *project.Project, im catalog.Image) string {
	return cmp.Or(im.Version, p.Stamp.ImageTag())
}

// A registryTag is the registry and the tag in an image's name, REGISTRY/NAME:TAG.
type registryTag struct{ registry, tag string }

// registryTags returns the release's registry and tag of an image, then the user's, if they differ.
func registryTags(p *project.Project, im catalog.Image) []registryTag {
	own := registryTag{p.Catalog.Registry, tagOf(p, im)}
	users := registryTag{cmp.Or(p.Settings.DockerRegistry, own.registry), cmp.Or(p.Settings.DockerImageTag, own.tag)}
	if im.Versioned() { // a third-party image keeps its version as its tag
		users.tag = own.tag
	}
	return slices.Compact([]registryTag{own, users})
}

// archiveTags returns the names of an image for one platform, in its docker archive. The first is its name in release.json.
func archiveTags(p *project.Project, im catalog.Image, arch string) []string {
	var tags []string
	for _, at := range registryTags(p, im) {
		tags = append(tags, image.Tags(at.registry, im.Name, arch, at.tag)...)
	}
	return tags
}

// indexTags returns the names of an image's index over all its platforms. The first is its name in release.json.
func indexTags(p *project.Project, im catalog.Image) []string {
	var tags []string
	for _, at := range registryTags(p, im) {
		tags = append(tags, at.registry+"/"+im.Name+":"+at.tag)
	}
	return tags
}
