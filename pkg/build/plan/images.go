package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"

	"slipway.build/pkg/build/image"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
)

// images plans the images for some platforms, without tarballs.
func (b *builder) images(platforms []catalog.Platform) error {
	planned := 0
	for _, platform := range platforms {
		for _, im := range b.Catalog.ImagesFor(catalog.Server, platform) {
			if _, err := b.image(platform, im); err != nil {
				return err
			}
			planned++
		}
	}
	if planned == 0 {
		return &NotForError{"an image", platforms, b.Catalog.Sets[catalog.Server]}
	}
	return nil
}

// image plans an image for a platform, and returns the files that go into a tarball: the docker archive, and beside it the
// file with its tag, as Kubernetes has it.
func (b *builder) image(platform catalog.Platform, im catalog.Image) ([]string, error) {
	spec := b.imageSpec(platform, im)
	files := []string{spec.Archive, spec.DockerTag}
	if slices.Contains(b.parts, spec.Part) {
		return files, nil
	}
	b.parts = append(b.parts, spec.Part)
	var binaries []catalog.Binary
	for _, name := range im.Binaries() {
		bin, _ := b.Catalog.Binary(name) // guaranteed by catalog.Load
		binaries = append(binaries, bin)
		spec.Binaries = append(spec.Binaries, image.Binary{Name: bin.Name, File: b.binary(platform, bin)})
	}
	if err := b.compile(platform, binaries); err != nil {
		return nil, err
	}
	if b.hasPackages(im.Base) {
		spec.Packages = b.debianPackages(platform, im.Base).Output // whose licenses no SPDX expression names
	} else {
		var err error
		if spec.LicenseNames, err = b.licenseNames(cmp.Or(im.Set, catalog.Server), platform, binaries); err != nil {
			return nil, err
		}
	}
	b.add(image.Action(b.Root, b.abs(archives), spec))
	return files, nil
}

// imageSpec describes an image, but for what it is made of. An image of another project says nothing about the release, so
// it is the same in all releases.
func (b *builder) imageSpec(platform catalog.Platform, im catalog.Image) image.Spec {
	dir := slashed(Images, platform.Arch)
	spec := image.Spec{
		Name: im.File(),
		Program: image.Program{
			Title:      im.Title,
			User:       im.User,
			Entrypoint: im.Entrypoint,
			Arguments:  im.Arguments,
			SetUID:     im.SetUID,
			OS:         platform.OS,
			Arch:       platform.Arch,
			Version:    b.Stamp.Version,
			Revision:   b.Stamp.Commit,
			Created:    b.Stamp.Date.UTC(),
		},
		Base:      im.Base,
		Bases:     slashed(sourceDir, "images"),
		Tag:       b.imageTag(im),
		Archive:   slashed(dir, im.File()+".tar"),
		DockerTag: slashed(dir, im.File()+".docker_tag"),
		Part:      slashed(stage, "images", platform.Dash(), im.File()),
	}
	spec.ArchiveTags, spec.Tags = b.imageTags(im, platform.Arch)
	if im.Addon() {
		spec.Version, spec.Revision, spec.Source, spec.Created = im.Version, im.Revision, im.Source, im.Created.UTC()
	}
	return spec
}

// layout plans the OCI layout of all images that are planned.
func (b *builder) layout() {
	if len(b.parts) > 0 {
		b.add(image.LayoutAction(b.Root, image.LayoutSpec{Parts: b.parts, Output: Layout}))
	}
}

// imageTag returns the tag of an image: its own, or the release's.
func (b *builder) imageTag(im catalog.Image) string { return cmp.Or(im.Version, b.Stamp.ImageTag()) }

// imageTags returns the names of an image: those in its docker archive, and those of its index of platforms. They are the
// release's own, and those that the user adds.
func (b *builder) imageTags(im catalog.Image, arch string) (archive, index []string) {
	add := func(registry, tag string) {
		for _, name := range image.Tags(registry, im.Name, arch, tag) {
			if !slices.Contains(archive, name) {
				archive = append(archive, name)
			}
		}
		if name := registry + "/" + im.Name + ":" + tag; !slices.Contains(index, name) {
			index = append(index, name)
		}
	}
	tag := b.imageTag(im)
	add(b.Catalog.Registry, tag)
	version := b.Settings.DockerImageTag
	if version == "" || im.Addon() { // the version is the other project's
		version = tag
	}
	add(cmp.Or(b.Settings.DockerRegistry, b.Catalog.Registry), version)
	return archive, index
}

// validateTags checks the parts of image names before anything is compiled.
func (s Settings) validateTags() error {
	if s.DockerRegistry != "" {
		if _, err := name.NewRepository(s.DockerRegistry+"/image", name.WeakValidation); err != nil {
			return badSetting("KUBE_DOCKER_REGISTRY", s.DockerRegistry, "a registry's name, such as registry.example.com/team")
		}
	}
	if s.DockerImageTag != "" {
		if _, err := name.NewTag("registry.example/image:"+s.DockerImageTag, name.StrictValidation); err != nil {
			return badSetting("KUBE_DOCKER_IMAGE_TAG", s.DockerImageTag, "an image tag: letters, digits, and _ . -, at most 128")
		}
	}
	return nil
}

// badSetting returns the error for a variable whose value cannot be used.
func badSetting(variable, value, want string) error {
	return badrequest.Mark(fmt.Errorf("%s=%q: want %s", variable, value, want))
}
