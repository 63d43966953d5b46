package image

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/archive"
)

// Contents are everything that decides an image's bytes, together with the files its layers name.
type Contents struct {
	OS, Arch   string // as GOOS and GOARCH
	Layers     []Layer
	Entrypoint []string
	Cmd        []string // default arguments
	Env        []string // KEY=value
	User       string   // empty is root
	WorkingDir string   // empty is /
	Labels     map[string]string
	Created    time.Time // of the image, and of every file in it, in whole seconds
}

// A Layer is a set of files that are added to those of the layers before it.
type Layer struct {
	Entries []archive.Entry
	Comment string // what it holds, for the image's history
}

// Build makes an image with uncompressed layers. It reads the files once; they must not change until the image is saved.
func Build(c Contents) (v1.Image, error) {
	layers, err := newLayers(c, archive.Packer{})
	if err != nil {
		return nil, err
	}
	return assemble(c, layers)
}

// newLayers returns the layers as a packer makes them, at the time of the contents.
func newLayers(c Contents, p archive.Packer) ([]*layer, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	p.Time = c.created()
	layers := make([]*layer, len(c.Layers))
	for i, l := range c.Layers {
		var err error
		if layers[i], err = newLayer(l.Entries, p); err != nil {
			return nil, fmt.Errorf("build image: layer %q: %w", l.Comment, err)
		}
	}
	return layers, nil
}

// assemble makes the image of contents whose layers were made.
func assemble(c Contents, layers []*layer) (v1.Image, error) {
	adds := make([]mutate.Addendum, len(layers))
	for i, l := range layers {
		adds[i] = mutate.Addendum{
			Layer:   l,
			History: v1.History{Created: v1.Time{Time: c.created()}, CreatedBy: "slipway", Comment: c.Layers[i].Comment},
		}
	}
	img, err := mutate.ConfigFile(empty.Image, c.config())
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	if img, err = mutate.Append(img, adds...); err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	img = mutate.MediaType(img, types.OCIManifestSchema1)
	return mutate.ConfigMediaType(img, types.OCIConfigJSON), nil
}

func (c Contents) created() time.Time { return c.Created.UTC().Truncate(time.Second) }

func (c Contents) check() error {
	switch {
	case c.OS == "" || c.Arch == "":
		return fmt.Errorf("platform %q/%q is incomplete", c.OS, c.Arch)
	case c.Created.IsZero():
		return errors.New("no creation time")
	case len(c.Layers) == 0:
		return errors.New("no layers")
	}
	return nil
}

func (c Contents) config() *v1.ConfigFile {
	return &v1.ConfigFile{
		OS:           c.OS,
		Architecture: c.Arch,
		Variant:      variant(c.Arch),
		Created:      v1.Time{Time: c.created()},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: slices.Clone(c.Entrypoint),
			Cmd:        slices.Clone(c.Cmd),
			Env:        slices.Clone(c.Env),
			User:       c.User,
			WorkingDir: c.WorkingDir,
			Labels:     maps.Clone(c.Labels),
		},
	}
}

// Binaries for arm are compiled with GOARM=7, and runtimes choose an image by variant there. Other architectures have
// no variant that all runtimes agree on.
func variant(arch string) string {
	if arch == "arm" {
		return "v7"
	}
	return ""
}

// A layer is an uncompressed tar, made from its files each time it is read.
type layer struct {
	tarball *archive.Tarball
	digest  v1.Hash
}

var _ v1.Layer = (*layer)(nil)

func newLayer(entries []archive.Entry, p archive.Packer) (*layer, error) {
	tarball, err := p.Tarball(entries)
	if err != nil {
		return nil, err
	}
	r, err := tarball.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	digest, _, err := v1.SHA256(r)
	if err != nil {
		return nil, err
	}
	return &layer{tarball, digest}, nil
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Size() (int64, error)                 { return l.tarball.Size(), nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return l.tarball.Open() }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return l.tarball.Open() }
func (l *layer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
