package image

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/archive"
)

// A Spec is everything that decides an image's bytes, together with the files its layers name.
type Spec struct {
	OS, Arch   string // as GOOS and GOARCH
	Layers     []Layer
	Entrypoint []string
	Cmd        []string // arguments, where nobody gives others
	Env        []string // KEY=value
	User       string   // empty is root
	WorkingDir string   // empty is /
	Labels     map[string]string
	Created    time.Time // of the image, and of every file in it; whole seconds
}

// A Layer is a set of files, laid over those of the layers before it.
type Layer struct {
	Entries []archive.Entry
	Comment string // what it holds, for the image's history
}

// Build makes the image that s describes. It reads the files once; they have to stay as they are until the image is
// saved.
func Build(s Spec) (v1.Image, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	created := s.Created.UTC().Truncate(time.Second)
	adds := make([]mutate.Addendum, len(s.Layers))
	for i, l := range s.Layers {
		stream, err := newLayer(l.Entries, created)
		if err != nil {
			return nil, fmt.Errorf("build image: layer %q: %w", l.Comment, err)
		}
		adds[i] = mutate.Addendum{
			Layer:   stream,
			History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "slipway", Comment: l.Comment},
		}
	}
	img, err := mutate.ConfigFile(empty.Image, s.config(created))
	if err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	if img, err = mutate.Append(img, adds...); err != nil {
		return nil, fmt.Errorf("build image: %w", err)
	}
	img = mutate.MediaType(img, types.OCIManifestSchema1)
	return mutate.ConfigMediaType(img, types.OCIConfigJSON), nil
}

func (s Spec) check() error {
	switch {
	case s.OS == "" || s.Arch == "":
		return fmt.Errorf("platform %q/%q is incomplete", s.OS, s.Arch)
	case s.Created.IsZero():
		return errors.New("no creation time")
	case len(s.Layers) == 0:
		return errors.New("no layers")
	}
	return nil
}

func (s Spec) config(created time.Time) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS:           s.OS,
		Architecture: s.Arch,
		Variant:      variant(s.Arch),
		Created:      v1.Time{Time: created},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: slices.Clone(s.Entrypoint),
			Cmd:        slices.Clone(s.Cmd),
			Env:        slices.Clone(s.Env),
			User:       s.User,
			WorkingDir: s.WorkingDir,
			Labels:     maps.Clone(s.Labels),
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
