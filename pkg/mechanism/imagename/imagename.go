// Package imagename checks names of container images, by the grammar of those who read them: Docker and containerd, whose parser refuses
// more than that of go-containerregistry (a tag -x, a host without a name, an empty folder), and the latter, which writes the images.
//
// What must never be in here: which images there are, and what their names mean.
package imagename

import (
	"errors"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
)

// Registry returns an error unless images can have names below a registry, such as registry.example.com:5000/team, or below a folder of the
// default one, such as team.
func Registry(registry string) error { return repository(registry + "/image") }

// RegistryHost is like Registry, but wants a host: not a folder of the default registry.
func RegistryHost(registry string) error {
	if err := Registry(registry); err != nil {
		return err
	}
	named, err := reference.ParseNormalizedNamed(registry + "/image")
	if host, _, _ := strings.Cut(registry, "/"); err == nil && reference.Domain(named) != host {
		err = errors.New("it does not begin with a host")
	}
	return err
}

// Image returns an error unless an image can have a name in a registry, such as team/image.
func Image(image string) error { return repository("registry.invalid/" + image) }

func repository(image string) error {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return err
	}
	if !reference.IsNameOnly(named) {
		return errors.New("it has a tag or a digest")
	}
	_, err = name.NewRepository(image)
	return err
}

// Tag returns an error unless an image can have a tag.
func Tag(tag string) error {
	image, err := reference.WithName("registry.invalid/image")
	if err != nil {
		return err
	}
	_, err = reference.WithTag(image, tag)
	return err
}

// Reference returns an error unless an engine understands the name of an image: with a tag or a digest or without, or its ID.
func Reference(image string) error {
	_, err := reference.ParseAnyReference(image)
	return err
}
