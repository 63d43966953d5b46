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

// imageTag is the tag of an image: its own, or the release's.
func (p *Project) imageTag(im catalog.Image) string { return cmp.Or(im.Version, p.Stamp.ImageTag()) }

// A registryTag is where an image is found: REGISTRY/NAME:TAG.
type registryTag struct{ registry, tag string }

// registryTags are where an image is found: by the release's own registry and tag, then by those that the user adds.
func (p *Project) registryTags(im catalog.Image) []registryTag {
	own := registryTag{p.Catalog.Registry, p.imageTag(im)}
	users := registryTag{cmp.Or(p.Settings.DockerRegistry, own.registry), cmp.Or(p.Settings.DockerImageTag, own.tag)}
	if im.Addon() { // another project's image is what its version says
		users.tag = own.tag
	}
	return slices.Compact([]registryTag{own, users})
}

// imageTags are the names of an image of one platform, in its docker archive.
func (p *Project) imageTags(im catalog.Image, arch string) []string {
	var tags []string
	for _, at := range p.registryTags(im) {
		tags = append(tags, image.Tags(at.registry, im.Name, arch, at.tag)...)
	}
	return tags
}

// indexTags are the names of an image over all its platforms.
func (p *Project) indexTags(im catalog.Image) []string {
	var tags []string
	for _, at := range p.registryTags(im) {
		tags = append(tags, at.registry+"/"+im.Name+":"+at.tag)
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

func badSetting(variable, value, want string) error {
	return badrequest.Mark(fmt.Errorf("%s=%q: want %s", variable, value, want))
}
