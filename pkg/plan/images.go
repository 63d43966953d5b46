package plan

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"

	"slipway.build/pkg/action"
	"slipway.build/pkg/catalog"
	"slipway.build/pkg/image"
)

// logRunner is in every image, for manifests that send output to a file.
const logRunner = "kube-log-runner"

// checkImages tells that what every image needs is not there.
func checkImages(c *catalog.Catalog) error {
	if bin, _ := c.Binary(logRunner); len(c.Images) > 0 && !bin.In(catalog.Server) {
		return fmt.Errorf("%s: images need the binary %s, in the set %s", catalog.File, logRunner, catalog.Server)
	}
	return nil
}

// images plans the component images for some platforms, without tarballs.
func (b *builder) images(platforms []catalog.Platform) error {
	planned := 0
	for _, platform := range platforms {
		planned += len(b.image(platform))
	}
	if planned == 0 {
		return &NotForError{"an image", platforms, b.Catalog.Sets[catalog.Server]}
	}
	return nil
}

// image plans the images for one platform, and returns the files that go into the server tarball: for each image the
// docker archive, and the file with its tag that Kubernetes has beside it.
func (b *builder) image(platform catalog.Platform) []string {
	var files []string
	for _, im := range b.Catalog.ImagesFor(platform) {
		dir := slashed(Images, platform.Arch)
		tar, tag := slashed(dir, im.Name+".tar"), slashed(dir, im.Name+".docker_tag")
		files = append(files, tar, tag)
		id := "image " + platform.String() + " " + im.Name
		if b.planned[id] {
			continue
		}
		b.planned[id] = true
		var needed []catalog.Binary
		for _, name := range []string{im.Binary, logRunner} {
			bin, _ := b.Catalog.Binary(name) // the catalog and checkImages have seen to it that it is there
			needed = append(needed, bin)
		}
		b.compile(platform, needed)
		b.add(b.imageAction(id, platform, im, tar, tag))
	}
	return files
}

func (b *builder) imageAction(id string, platform catalog.Platform, im catalog.Image, tar, tag string) *action.Action {
	program := image.Program{
		Name:      im.Binary,
		Title:     im.Title,
		Binary:    b.abs(b.binary(platform, im.Binary)),
		LogRunner: b.abs(b.binary(platform, logRunner)),
		OS:        platform.OS,
		Arch:      platform.Arch,
		Version:   b.Stamp.Version,
		Revision:  b.Stamp.Commit,
		Created:   b.Stamp.Date,
	}
	tags := b.imageTags(im.Name, platform.Arch)
	base := slashed(sourceDir, "images", im.Base)
	return &action.Action{
		ID:    id,
		Phase: "image",
		Recipe: append([]string{
			Recipe, image.Recipe, platform.String(), im.Binary, im.Title, im.Base, b.Stamp.Version, b.Stamp.Commit, fmt.Sprint(b.Stamp.Date.Unix()),
		}, tags...),
		Inputs:  []string{b.binary(platform, im.Binary), b.binary(platform, logRunner), base + "/"},
		Outputs: []string{tar, tag},
		Run: func(ctx context.Context, t *action.Task) error {
			base, err := image.Base(b.abs(sourceDir), im.Base)
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
			return os.WriteFile(t.Path(tag), []byte(b.Stamp.ImageTag()+"\n"), 0o644)
		},
	}
}

// imageTags are the names an image is saved under: the release's own, and those that the user adds.
func (b *builder) imageTags(name, arch string) []string {
	tag := b.Stamp.ImageTag()
	tags := image.Tags(b.Catalog.Registry, name, arch, tag)
	registry, version := b.Settings.DockerRegistry, b.Settings.DockerImageTag
	if registry == "" && version == "" {
		return tags
	}
	if registry == "" {
		registry = b.Catalog.Registry
	}
	if version == "" {
		version = tag
	}
	for _, tag := range image.Tags(registry, name, arch, version) {
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
			return &settingError{"KUBE_DOCKER_REGISTRY", s.DockerRegistry, "a registry's name, such as registry.example.com/team"}
		}
	}
	if s.DockerImageTag != "" {
		if _, err := name.NewTag("registry.example/image:"+s.DockerImageTag, name.StrictValidation); err != nil {
			return &settingError{"KUBE_DOCKER_IMAGE_TAG", s.DockerImageTag, "an image tag: letters, digits, and _ . -, at most 128"}
		}
	}
	return nil
}

// A settingError says that a variable's value cannot be used.
type settingError struct{ variable, value, want string }

func (e *settingError) Error() string {
	return fmt.Sprintf("%s=%q: it has to be %s", e.variable, e.value, e.want)
}

// ExitCode is that of a usage error.
func (e *settingError) ExitCode() int { return 2 }

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
