package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
)

// Annotations of a referrer, by which clients find a bundle without reading it. See https://github.com/sigstore/cosign.
const (
	contentAnnotation   = "dev.sigstore.bundle.content"
	predicateAnnotation = "dev.sigstore.bundle.predicateType"
	createdAnnotation   = "org.opencontainers.image.created"
)

// empty is the content of the configuration of a manifest that is no image, and emptyType its media type.
const (
	empty     = "{}"
	emptyType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// A Referrer adds a bundle to an image or index. It is a manifest.
type Referrer struct {
	Descriptor v1.Descriptor
	Subject    v1.Hash            // what it is about
	Blobs      map[v1.Hash][]byte // the manifest, and what that names
}

// manifest is that of a referrer.
type manifest struct {
	SchemaVersion int64             `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Subject       v1.Descriptor     `json:"subject"`
	Annotations   map[string]string `json:"annotations"`
}

// Referrers returns what the bundles of statements about images become beside those images: a referrer for each statement, and for each key
// that it is signed by. The bundles are in a release's folder.
func Referrers(r *release.Release, in fs.FS, statements []Statement) ([]Referrer, error) {
	added, err := Added(in)
	if err != nil {
		return nil, err
	}
	var all []Referrer
	for _, s := range statements {
		if s.Artifact.Name == "" {
			continue
		}
		for _, below := range append([]string{""}, added...) {
			bundle, err := fs.ReadFile(in, path.Join(below, s.File))
			if err != nil {
				return nil, err
			}
			made, err := refer(s, bytes.TrimSpace(bundle), r.Date)
			if err != nil {
				return nil, err
			}
			all = append(all, made)
		}
	}
	return all, nil
}

// refer returns the referrer of a statement that a bundle has.
func refer(s Statement, bundle []byte, created time.Time) (Referrer, error) {
	subject := v1.Descriptor{MediaType: types.MediaType(s.Artifact.MediaType), Size: s.Artifact.Size,
		Digest: v1.Hash{Algorithm: "sha256", Hex: s.Artifact.SHA256}}
	layer, config := describe(signature.BundleType, bundle), describe(emptyType, []byte(empty))
	m := manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: signature.BundleType, Config: config,
		Layers: []v1.Descriptor{layer}, Subject: subject,
		Annotations: map[string]string{
			contentAnnotation: "dsse-envelope", predicateAnnotation: s.PredicateType, createdAnnotation: created.UTC().Format(time.RFC3339),
		},
	}
	data, err := json.Marshal(m)
	if err != nil {
		return Referrer{}, err
	}
	d := describe(types.OCIManifestSchema1, data)
	d.ArtifactType, d.Annotations = m.ArtifactType, m.Annotations
	return Referrer{d, subject.Digest, map[v1.Hash][]byte{d.Digest: data, layer.Digest: bundle, config.Digest: []byte(empty)}}, nil
}

func describe(kind types.MediaType, data []byte) v1.Descriptor {
	hash := v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(data))}
	return v1.Descriptor{MediaType: kind, Size: int64(len(data)), Digest: hash}
}
