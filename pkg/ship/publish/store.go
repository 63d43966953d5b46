package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/sign"
)

// A store has the images that are published, and what refers to them: in an OCI image layout and a release's folder, or in a bundle. What
// go-containerregistry has of this kind reads layouts in folders alone.
type store struct {
	images    []bundle.Image
	referrers []sign.Referrer
	blob      func(v1.Hash) (io.ReadCloser, error)
}

// open opens a blob.
func (s *store) open(hash v1.Hash) (io.ReadCloser, error) {
	for _, made := range s.referrers {
		if data, ok := made.Blobs[hash]; ok {
			return io.NopCloser(bytes.NewReader(data)), nil
		}
	}
	return s.blob(hash)
}

func (s *store) read(hash v1.Hash) ([]byte, error) {
	r, err := s.open(hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// manifest reads a manifest that was verified.
func (s *store) manifest(hash v1.Hash) (m v1.Manifest, err error) {
	data, err := s.read(hash)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// sizes returns the sizes of all blobs, in bytes, by digest.
func (s *store) sizes() (map[string]int64, error) {
	all := map[string]int64{}
	for _, i := range s.images {
		for _, a := range i.Parts() {
			m, err := s.manifest(hashOf(a))
			if err != nil {
				return nil, err
			}
			for _, d := range append(m.Layers, m.Config) { // an index has neither
				all[d.Digest.String()] = d.Size
			}
		}
	}
	for _, made := range s.referrers {
		for hash, data := range made.Blobs {
			all[hash.String()] = int64(len(data))
		}
	}
	return all, nil
}

// A pushable is an image or an index.
type pushable interface {
	partial.Describable
	RawManifest() ([]byte, error)
}

// top returns an image or index of a release.
func (s *store) top(a release.Artifact) (pushable, error) {
	hash := hashOf(a)
	if a.Kind == release.Index {
		return storedIndex{s, hash, types.MediaType(a.MediaType)}, nil
	}
	return s.image(hash, types.MediaType(a.MediaType))
}

func hashOf(a release.Artifact) v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: a.SHA256} }

// image returns an image, or another manifest with blobs.
func (s *store) image(hash v1.Hash, kind types.MediaType) (v1.Image, error) {
	return partial.CompressedToImage(&storedImage{s, hash, kind})
}

type storedImage struct {
	*store
	hash v1.Hash
	kind types.MediaType
}

func (i *storedImage) MediaType() (types.MediaType, error) { return i.kind, nil }
func (i *storedImage) RawManifest() ([]byte, error)        { return i.read(i.hash) }

func (i *storedImage) RawConfigFile() ([]byte, error) {
	m, err := i.manifest(i.hash)
	if err != nil {
		return nil, err
	}
	return i.read(m.Config.Digest)
}

func (i *storedImage) LayerByDigest(hash v1.Hash) (partial.CompressedLayer, error) {
	m, err := i.manifest(i.hash)
	if err != nil {
		return nil, err
	}
	for _, d := range append(m.Layers, m.Config) {
		if d.Digest == hash {
			return &storedLayer{i.store, d}, nil
		}
	}
	return nil, fmt.Errorf("%s has no blob %s", i.hash, hash)
}

type storedLayer struct {
	store *store
	d     v1.Descriptor
}

func (l *storedLayer) Digest() (v1.Hash, error)            { return l.d.Digest, nil }
func (l *storedLayer) Size() (int64, error)                { return l.d.Size, nil }
func (l *storedLayer) MediaType() (types.MediaType, error) { return l.d.MediaType, nil }
func (l *storedLayer) Compressed() (io.ReadCloser, error)  { return l.store.open(l.d.Digest) }
func (l *storedLayer) Descriptor() (*v1.Descriptor, error) { return &l.d, nil }

type storedIndex struct {
	store *store
	hash  v1.Hash
	kind  types.MediaType
}

var _ v1.ImageIndex = storedIndex{}

func (i storedIndex) MediaType() (types.MediaType, error) { return i.kind, nil }
func (i storedIndex) Digest() (v1.Hash, error)            { return i.hash, nil }
func (i storedIndex) RawManifest() ([]byte, error)        { return i.store.read(i.hash) }
func (i storedIndex) Size() (int64, error)                { return partial.Size(i) }

func (i storedIndex) IndexManifest() (*v1.IndexManifest, error) {
	data, err := i.RawManifest()
	if err != nil {
		return nil, err
	}
	return v1.ParseIndexManifest(bytes.NewReader(data))
}

func (i storedIndex) Image(hash v1.Hash) (v1.Image, error) {
	m, err := i.IndexManifest()
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(m.Manifests, func(d v1.Descriptor) bool { return d.Digest == hash })
	if n < 0 {
		return nil, fmt.Errorf("%s has no image %s", i.hash, hash)
	}
	return i.store.image(hash, m.Manifests[n].MediaType)
}

func (i storedIndex) ImageIndex(hash v1.Hash) (v1.ImageIndex, error) {
	return nil, fmt.Errorf("%s has no index %s", i.hash, hash)
}

// blobName is where layouts have a blob.
func blobName(hash v1.Hash) string { return path.Join("blobs", hash.Algorithm, hash.Hex) }
