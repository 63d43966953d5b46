package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
)

// PartFile describes, in the folder of a part, the image there: a Part in JSON. The blobs beside it are those of a layout.
const PartFile = "image.json"

// A Part is an image for one platform: what an OCI layout holds of it, and how its index is named.
type Part struct {
	Name     string        `json:"name"`     // of its files
	Tags     []string      `json:"tags"`     // complete names of the index of the image's platforms
	Manifest v1.Descriptor `json:"manifest"` // with the platform
	Config   v1.Descriptor `json:"config"`   // its digest is the image ID
	Layers   []PartLayer   `json:"layers"`
}

// A PartLayer is a compressed layer.
type PartLayer struct {
	Digest v1.Hash `json:"digest"`
	Size   int64   `json:"size"`   // bytes
	DiffID v1.Hash `json:"diffID"` // digest of the uncompressed layer
}

// ReadPart reads the description of the image in the folder of a part.
func ReadPart(dir string) (Part, error) {
	var p Part
	data, err := os.ReadFile(filepath.Join(dir, PartFile))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, fmt.Errorf("image %s: %w", dir, err)
	}
	return p, nil
}

// ReadIndexes returns the descriptors of the images in a layout, over all their platforms, by their complete names.
func ReadIndexes(layout string) (map[string]v1.Descriptor, error) {
	file := filepath.Join(layout, "index.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all v1.IndexManifest
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	indexes := map[string]v1.Descriptor{}
	for _, d := range all.Manifests {
		indexes[d.Annotations[refName]] = d
	}
	return indexes, nil
}

// blobs lists the blobs of the part, once each.
func (p Part) blobs() []v1.Hash {
	blobs := []v1.Hash{p.Manifest.Digest, p.Config.Digest}
	for _, l := range p.Layers {
		if !slices.Contains(blobs, l.Digest) {
			blobs = append(blobs, l.Digest)
		}
	}
	return blobs
}

// blobPath returns the path of a blob in a layout.
func blobPath(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }

// A partWriter writes the blobs of a part.
type partWriter struct {
	dir    string
	packer archive.Packer
}

// layers writes the compressed layers.
func (w partWriter) layers(ctx context.Context, c Contents, plain []*layer) ([]PartLayer, error) {
	if err := os.MkdirAll(filepath.Join(w.dir, "blobs", "sha256"), 0o755); err != nil {
		return nil, err
	}
	packed := make([]PartLayer, len(plain))
	for i, l := range plain {
		tmp := filepath.Join(w.dir, "layer")
		digest, err := writeFile(tmp, func(to io.Writer) error { return w.packer.TarGz(ctx, to, c.Layers[i].Entries) })
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(tmp)
		if err != nil {
			return nil, err
		}
		packed[i] = PartLayer{digest, info.Size(), l.digest}
		if err := os.Rename(tmp, w.path(digest)); err != nil {
			return nil, err
		}
	}
	return packed, nil
}

func (w partWriter) path(digest v1.Hash) string {
	return filepath.Join(w.dir, filepath.FromSlash(blobPath(digest)))
}

// write completes the part by the image's config and manifest, and describes it.
func (w partWriter) write(p Part, img *Image, platform v1.Platform) (Part, error) {
	manifest, err := manifestOf(img, p.Layers)
	if err != nil {
		return Part{}, err
	}
	p.Config, p.Manifest = describe(types.OCIConfigJSON, img.config), describe(types.OCIManifestSchema1, manifest)
	p.Manifest.Platform = &platform
	description, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return Part{}, err
	}
	for name, data := range map[string][]byte{
		w.path(p.Config.Digest): img.config, w.path(p.Manifest.Digest): manifest, filepath.Join(w.dir, PartFile): append(description, '\n'),
	} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return Part{}, err
		}
	}
	return p, nil
}

// manifestOf returns the manifest of an image with compressed layers.
func manifestOf(img *Image, layers []PartLayer) ([]byte, error) {
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: describe(types.OCIConfigJSON, img.config)}
	for _, l := range layers {
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.OCILayer, Size: l.Size, Digest: l.Digest})
	}
	return json.Marshal(m)
}

func describe(kind types.MediaType, data []byte) v1.Descriptor {
	digest, size, _ := v1.SHA256(bytes.NewReader(data)) // reading memory does not fail
	return v1.Descriptor{MediaType: kind, Size: size, Digest: digest}
}

// baseDigest returns the digest of the manifest that the base would have as an image of its own: of its layers alone, for
// the same platform and time.
func baseDigest(c Contents, layers []*layer, packed []PartLayer) (v1.Hash, error) {
	img, err := assemble(Contents{OS: c.OS, Arch: c.Arch, Layers: c.Layers[:len(layers)], Created: c.Created}, layers)
	if err != nil {
		return v1.Hash{}, err
	}
	manifest, err := manifestOf(img, packed)
	return describe(types.OCIManifestSchema1, manifest).Digest, err
}

// A LayoutSpec describes an OCI image layout of several images: folders, relative to the tree's root.
type LayoutSpec struct {
	Parts  []string // of each image and platform
	Output string
}

// LayoutAction returns the action that joins parts to a layout: one index for each image, over all of its platforms, by
// all of its tags. It links the blobs, and so reads and writes none.
func LayoutAction(root string, s LayoutSpec) *action.Action {
	var inputs []string
	for _, p := range s.Parts {
		inputs = append(inputs, p+"/")
	}
	return &action.Action{
		ID:      "image layout",
		Phase:   "image",
		Recipe:  code.Recipe(s),
		Inputs:  inputs,
		Outputs: []string{s.Output + "/"},
		Run:     func(_ context.Context, t *action.Task) error { return s.run(t, root) },
	}
}

func (s LayoutSpec) run(t *action.Task, root string) error {
	images := map[string][]Part{}
	linked := map[v1.Hash]bool{}
	for _, dir := range s.Parts {
		p, err := ReadPart(filepath.Join(root, filepath.FromSlash(dir)))
		if err != nil {
			return err
		}
		images[p.Name] = append(images[p.Name], p)
		for _, blob := range p.blobs() {
			if linked[blob] {
				continue // images share layers
			}
			linked[blob] = true
			if err := t.Link(path.Join(dir, blobPath(blob)), path.Join(s.Output, blobPath(blob))); err != nil {
				return err
			}
		}
	}
	to := t.Path(s.Output + "/")
	top, indexes, err := indexesOf(images)
	if err != nil {
		return err
	}
	files := map[string][]byte{"index.json": top, "oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	for digest, data := range indexes {
		files[blobPath(digest)] = data
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(to, filepath.FromSlash(name)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Annotations of a layout's index: under what names skopeo, and containerd, find an image.
const (
	refName       = "org.opencontainers.image.ref.name"
	containerName = "io.containerd.image.name"
)

// indexesOf returns the index of a layout of images, by name, and the blobs of the images' own indexes. The index.json and
// the indexes are written here: mutate.AppendManifests puts an artifactType into ordinary descriptors.
func indexesOf(images map[string][]Part) (top []byte, indexes map[v1.Hash][]byte, err error) {
	all := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	indexes = map[v1.Hash][]byte{}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		parts := images[name]
		slices.SortFunc(parts, func(a, b Part) int {
			return strings.Compare(a.Manifest.Platform.String(), b.Manifest.Platform.String())
		})
		index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
		for _, p := range parts {
			index.Manifests = append(index.Manifests, p.Manifest)
		}
		data, err := json.Marshal(index)
		if err != nil {
			return nil, nil, err
		}
		d := describe(types.OCIImageIndex, data)
		indexes[d.Digest] = data
		for _, tag := range parts[0].Tags {
			d.Annotations = map[string]string{refName: tag, containerName: tag}
			all.Manifests = append(all.Manifests, d)
		}
	}
	top, err = json.Marshal(all)
	return top, indexes, err
}
