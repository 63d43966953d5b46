package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
)

// Annotations of a referrer, by which clients find a bundle without reading it. See https://github.com/sigstore/cosign.
const (
	contentAnnotation   = "dev.sigstore.bundle.content"
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
	createdAnnotation   = "org.opencontainers.image.created"
)

// RefName is the annotation of a layout's index that names images.
const RefName = "org.opencontainers.image.ref.name"

// empty is the content of the configuration of a manifest that is no image, and emptyType its media type.
const (
	empty     = "{}"
	emptyType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// A referrer is a manifest that adds a bundle to an image or index.
type referrer struct {
	SchemaVersion int64             `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Subject       v1.Descriptor     `json:"subject"`
	Annotations   map[string]string `json:"annotations"`
}

// HasImages returns an error unless an OCI image layout has all images of the release in a folder.
func HasImages(dir, layout string) error {
	r, err := release.Read(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(layout, "oci-layout")); errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is no OCI image layout: it has no file oci-layout")
	}
	for _, a := range r.Artifacts {
		if a.Kind != release.Image && a.Kind != release.Index {
			continue
		}
		_, err := os.Stat(blobFile(layout, a.SHA256))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it is the layout of another release: it does not have %s, sha256:%s", a.Name, a.SHA256)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func blobFile(layout, sum string) string { return filepath.Join(layout, "blobs", "sha256", sum) }

// Layout makes the OCI image layout to: all of the layout from, which a release's images are in, and the bundles in the release's folder
// as referrers of each image and index. Files of from are linked, not copied, if they can be. It replaces a layout that is there.
func Layout(dir, from, to string) error {
	r, statements, err := folder(dir).statements()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(to), ".signing-")
	if err != nil {
		return err
	}
	w := layoutWriter{tmp, r.Date}
	err = errors.Join(os.Chmod(tmp, 0o755), w.link(from))
	if err == nil {
		err = w.refer(folder(dir), statements)
	}
	if err == nil {
		err = atomicdir.Replace(tmp, to)
	}
	return errors.Join(err, os.RemoveAll(tmp))
}

type layoutWriter struct {
	dir     string
	created time.Time
}

// link links the blobs of a layout.
func (w layoutWriter) link(from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		name, to := filepath.Join(from, filepath.FromSlash(rel)), filepath.Join(w.dir, filepath.FromSlash(rel))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if os.Link(name, to) == nil {
			return nil
		}
		return errors.Join(atomicfile.Copy(name, to), os.Chmod(to, 0o644))
	})
}

// refer adds referrers, and names them in the index: as they are, and by the tag under which registries without an interface for
// referrers have them, sha256-HEX. See https://github.com/opencontainers/distribution-spec.
func (w layoutWriter) refer(dir folder, statements []Statement) error {
	file := filepath.Join(w.dir, "index.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	by := map[string][]v1.Descriptor{} // referrers by their subject's digest
	var order []string
	added, err := Added(string(dir))
	if err != nil {
		return err
	}
	for _, s := range statements {
		if s.Artifact.Name == "" {
			continue
		}
		digest := s.Artifact.SHA256
		if by[digest] == nil {
			order = append(order, digest)
		}
		for _, below := range append([]string{""}, added...) {
			d, err := w.referrer(dir, path.Join(below, s.File), s)
			if err != nil {
				return err
			}
			by[digest] = append(by[digest], d)
		}
	}
	for _, digest := range order {
		data, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: by[digest]})
		if err != nil {
			return err
		}
		d, err := w.blob(types.OCIImageIndex, data)
		if err != nil {
			return err
		}
		d.Annotations = map[string]string{RefName: "sha256-" + digest}
		index.Manifests = append(index.Manifests, d)
		index.Manifests = append(index.Manifests, by[digest]...)
	}
	if data, err = json.Marshal(index); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil { // it is a link
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// referrer writes the referrer for a statement that a file has in a bundle.
func (w layoutWriter) referrer(dir folder, file string, s Statement) (v1.Descriptor, error) {
	bundle, err := dir.read(file)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: sign the release first", err)
	}
	subject, err := w.subject(s.Artifact)
	if err != nil {
		return v1.Descriptor{}, err
	}
	layer, err := w.blob(signature.BundleType, bytes.TrimSpace(bundle))
	if err != nil {
		return v1.Descriptor{}, err
	}
	config, err := w.blob(emptyType, []byte(empty))
	if err != nil {
		return v1.Descriptor{}, err
	}
	m := referrer{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: signature.BundleType, Config: config,
		Layers: []v1.Descriptor{layer}, Subject: subject,
		Annotations: map[string]string{
			contentAnnotation: "dsse-envelope", predicateAnnotation: s.PredicateType, createdAnnotation: w.created.UTC().Format(time.RFC3339),
		},
	}
	data, err := json.Marshal(m)
	if err != nil {
		return v1.Descriptor{}, err
	}
	d, err := w.blob(types.OCIManifestSchema1, data)
	d.ArtifactType, d.Annotations = m.ArtifactType, m.Annotations
	return d, err
}

// subject describes an image or index, which must be in the layout.
func (w layoutWriter) subject(a release.Artifact) (v1.Descriptor, error) {
	info, err := os.Stat(blobFile(w.dir, a.SHA256))
	if err != nil {
		return v1.Descriptor{}, err // HasImages says what is wrong
	}
	return v1.Descriptor{
		MediaType: types.MediaType(a.MediaType), Size: info.Size(), Digest: v1.Hash{Algorithm: "sha256", Hex: a.SHA256},
	}, nil
}

// blob writes a blob, and describes it.
func (w layoutWriter) blob(kind types.MediaType, data []byte) (v1.Descriptor, error) {
	hash := fmt.Sprintf("%x", sha256.Sum256(data))
	file := blobFile(w.dir, hash)
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) { // one that is there may be a link to a file of the other layout
		err = os.WriteFile(file, data, 0o644)
	}
	return v1.Descriptor{MediaType: kind, Size: int64(len(data)), Digest: v1.Hash{Algorithm: "sha256", Hex: hash}}, err
}
