package image

import (
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/archive"
)

// A layer is an uncompressed tar, made from its files each time it is read.
type layer struct {
	tarball *archive.Tarball
	digest  v1.Hash
}

var _ v1.Layer = (*layer)(nil)

func newLayer(entries []archive.Entry, created time.Time) (*layer, error) {
	tarball, err := archive.NewTarball(entries, created)
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
