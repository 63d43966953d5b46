package plan

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"

	"slipway.build/pkg/build/image"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/catalog"
)

// staticBase is what all other bases lie on.
const staticBase = "static"

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

// image plans an image for a platform, and returns the files that go into a tarball: the docker archive, and the
// file with its tag that Kubernetes has beside it.
func (b *builder) image(platform catalog.Platform, im catalog.Image) ([]string, error) {
	dir := slashed(Images, platform.Arch)
	tar, tag := slashed(dir, im.File()+".tar"), slashed(dir, im.File()+".docker_tag")
	id := "image " + platform.String() + " " + im.File()
	if b.planned[id] {
		return []string{tar, tag}, nil
	}
	b.planned[id] = true
	var binaries []catalog.Binary
	for _, name := range im.Binaries() {
		bin, _ := b.Catalog.Binary(name) // the catalog has seen to it that it is there
		binaries = append(binaries, bin)
	}
	if err := b.compile(platform, binaries); err != nil {
		return nil, err
	}
	b.add(b.imageAction(id, platform, im, binaries, tar, tag))
	return []string{tar, tag}, nil
}

func (b *builder) imageAction(id string, platform catalog.Platform, im catalog.Image, binaries []catalog.Binary, tar, tag string) *action.Action {
	program := image.Program{
		Title:    im.Title,
		User:     im.User,
		OS:       platform.OS,
		Arch:     platform.Arch,
		Version:  cmp.Or(im.Version, b.Stamp.Version),
		Revision: b.Stamp.Commit,
		Created:  b.Stamp.Date,

		Entrypoint: im.Entrypoint,
		Arguments:  im.Arguments,
		SetUID:     im.SetUID,
	}
	var inputs []string
	for _, bin := range binaries {
		file := b.binary(platform, bin)
		inputs = append(inputs, file)
		program.Binaries = append(program.Binaries, image.Binary{Name: bin.Name, File: b.abs(file)})
	}
	if im.Base != "" {
		inputs = append(inputs, slashed(sourceDir, "images", im.Base)+"/")
	}
	if im.Base != "" && im.Base != staticBase {
		inputs = append(inputs, slashed(sourceDir, "images", staticBase)+"/")
	}
	packages := ""
	program.Licenses = "Apache-2.0"
	if b.hasPackages(im.Base) {
		tar := b.debianPackages(platform, im.Base)
		inputs = append(inputs, tar)
		packages, program.Licenses = b.abs(tar), ""
	}
	tags := b.imageTags(im, platform.Arch)
	return &action.Action{
		ID:    id,
		Phase: "image",
		Recipe: slices.Concat([]string{
			Recipe, image.Recipe, platform.String(), im.Title, im.Base, im.User, program.Version, b.Stamp.Commit, fmt.Sprint(b.Stamp.Date.Unix()),
		}, im.Binaries(), started(im), []string{"tags"}, tags),
		Inputs:  inputs,
		Outputs: []string{tar, tag},
		Run: func(ctx context.Context, t *action.Task) error {
			base, err := image.Base(b.abs(sourceDir), im.Base, packages)
			if err != nil {
				return err
			}
			img, err := image.Build(image.Component(base, program))
			if err != nil {
				return err
			}
			err = write(t.Path(tar), func(w *bufio.Writer) error { return image.Save(ctx, w, img, tags) })
			if err != nil {
				return err
			}
			return os.WriteFile(t.Path(tag), []byte(b.imageTag(im)+"\n"), 0o644)
		},
	}
}

// started is what a recipe says of how an image starts, where there is something to say.
func started(im catalog.Image) []string {
	var said []string
	if len(im.Entrypoint)+len(im.Arguments) > 0 {
		said = slices.Concat([]string{"entrypoint"}, im.Entrypoint, []string{"arguments"}, im.Arguments)
	}
	if im.SetUID {
		said = append(said, "setuid")
	}
	return said
}

// imageTag is the tag of an image: its own, or the release's.
func (b *builder) imageTag(im catalog.Image) string { return cmp.Or(im.Version, b.Stamp.ImageTag()) }

// imageTags are the names an image is saved under: the release's own, and those that the user adds.
func (b *builder) imageTags(im catalog.Image, arch string) []string {
	tag := b.imageTag(im)
	tags := image.Tags(b.Catalog.Registry, im.Name, arch, tag)
	registry, version := b.Settings.DockerRegistry, b.Settings.DockerImageTag
	if registry == "" && version == "" {
		return tags
	}
	if registry == "" {
		registry = b.Catalog.Registry
	}
	if version == "" || im.Addon() { // another project's image is what its version says
		version = tag
	}
	for _, tag := range image.Tags(registry, im.Name, arch, version) {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// validateTags checks what image names are made of before anything is compiled for them.
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
	return badrequest.Mark(fmt.Errorf("%s=%q: it has to be %s", variable, value, want))
}

// write makes a file of what a function writes.
func write(name string, to func(*bufio.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := to(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
