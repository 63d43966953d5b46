package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/unpack"
)

// An Image is an image in an archive, with all of its names.
type Image struct {
	Archive string // a file, which "docker save" may have written
	Names   []string
}

// Read returns the images in an archive, of which there is at least one.
func Read(archive string) ([]Image, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err == nil && len(manifest) == 0 {
		err = errors.New("it has none")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no archive of images: %w", archive, err)
	}
	var all []Image
	for _, d := range manifest {
		if len(d.RepoTags) == 0 {
			return nil, fmt.Errorf("%s: an image in it has no name", archive)
		}
		all = append(all, Image{archive, d.RepoTags})
	}
	return all, nil
}

// Name returns the image's shortest name. The others have the architecture in them.
func (i Image) Name() string {
	return slices.MinFunc(i.Names, func(a, b string) int { return len(a) - len(b) })
}

// Repositories returns the parts before a short name in the image's names: for coredns in
// registry.k8s.io/coredns/coredns:v1.14.2, registry.k8s.io/coredns.
func (i Image) Repositories(short string) []string {
	var all []string
	for _, name := range i.Names {
		repository, last := path.Split(name)
		if base, _, ok := strings.Cut(last, ":"); ok && base == short {
			all = append(all, strings.TrimSuffix(repository, "/"))
		}
	}
	return all
}

// IsAny reports whether the image has one of several short names.
func (i Image) IsAny(short ...string) bool {
	return slices.ContainsFunc(short, func(short string) bool { return len(i.Repositories(short)) > 0 })
}

// Title returns what the image holds, by its label.
func (i Image) Title() (string, error) {
	image, err := i.open()
	if err != nil {
		return "", err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", i.Archive, err)
	}
	return config.Config.Labels["org.opencontainers.image.title"], nil
}

// Extract writes the files of an image to a folder.
func (i Image) Extract(ctx context.Context, dir string) error {
	image, err := i.open()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := mutate.Extract(image)
	defer files.Close()
	if err := unpack.RootFilesystem(ctx, files, dir); err != nil {
		return fmt.Errorf("image %s: %w", i.Archive, err)
	}
	return nil
}

func (i Image) open() (v1.Image, error) {
	tag, err := name.NewTag(i.Names[0])
	if err != nil {
		return nil, err
	}
	image, err := tarball.ImageFromPath(i.Archive, &tag)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Archive, err)
	}
	return image, nil
}

// uncompressed returns the image with its layers as they are in the archive: to compress them would take longer than to send them.
func (i Image) uncompressed() (v1.Image, error) {
	image, err := i.open()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	plain := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		if plain, err = mutate.AppendLayers(plain, plainLayer{l}); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(plain, config)
}

// withProgram returns the image with a file in the place of its entry point.
func (i Image) withProgram(file string) (v1.Image, error) {
	base, err := i.uncompressed()
	if err != nil {
		return nil, err
	}
	config, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	if len(config.Config.Entrypoint) == 0 {
		return nil, fmt.Errorf("image %s has no entry point", i.Archive)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	header := &tar.Header{Name: strings.TrimPrefix(config.Config.Entrypoint[0], "/"), Mode: 0o755, Size: int64(len(program)),
		Format: tar.FormatPAX}
	noHeader := w.WriteHeader(header)
	_, noContent := w.Write(program)
	if err := errors.Join(noHeader, noContent, w.Close()); err != nil {
		return nil, err
	}
	return mutate.AppendLayers(base, static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
}

// A plainLayer is a layer that is not compressed.
type plainLayer struct{ v1.Layer }

func (l plainLayer) Digest() (v1.Hash, error)            { return l.DiffID() }
func (l plainLayer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l plainLayer) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Size reads the layer, whose archive does not say how long it is.
func (l plainLayer) Size() (int64, error) {
	r, err := l.Uncompressed()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(io.Discard, r)
}
