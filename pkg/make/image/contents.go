package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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

// An Image is contents whose layers were read. Its layers are uncompressed.
type Image struct {
	created time.Time
	config  []byte // in JSON; its digest is the image ID
	layers  []*layer
}

// Build makes an image. It reads the files once; they must not change until the image is saved.
func Build(c Contents) (*Image, error) {
	layers, err := newLayers(c, archive.Packer{})
	if err != nil {
		return nil, err
	}
	return assemble(c, layers)
}

// newLayers packs the layers, at the time of the contents.
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

// assemble returns the image of contents with these layers.
func assemble(c Contents, layers []*layer) (*Image, error) {
	config, err := json.Marshal(c.config(layers))
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	return &Image{c.created(), config, layers}, nil
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

func (c Contents) config(layers []*layer) v1.ConfigFile {
	at := v1.Time{Time: c.created()}
	config := v1.ConfigFile{
		OS:           c.OS,
		Architecture: c.Arch,
		Variant:      variant(c.Arch),
		Created:      at,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: c.Entrypoint,
			Cmd:        c.Cmd,
			Env:        c.Env,
			User:       c.User,
			WorkingDir: c.WorkingDir,
			Labels:     c.Labels,
		},
	}
	for i, l := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.digest)
		config.History = append(config.History, v1.History{Created: at, CreatedBy: "slipway", Comment: c.Layers[i].Comment})
	}
	return config
}

// Binaries for arm are compiled with GOARM=7, and runtimes choose an image by variant there. Other architectures have
// no variant that all runtimes agree on.
func variant(arch string) string {
	if arch == "arm" {
		return "v7"
	}
	return ""
}

// A layer is an uncompressed tar, packed from its files each time it is read.
type layer struct {
	*archive.Tarball
	digest v1.Hash
}

func newLayer(entries []archive.Entry, p archive.Packer) (*layer, error) {
	tarball, err := p.Tarball(entries)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := tarball.WriteTo(sum); err != nil {
		return nil, err
	}
	return &layer{tarball, v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}}, nil
}
