package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

// Types of statements besides provenance. See https://github.com/sigstore/cosign and https://github.com/in-toto/attestation.
const (
	ImageSignature = "https://sigstore.dev/cosign/sign/v1" // says nothing: an image is signed
	SPDXDocument   = "https://spdx.dev/Document"
)

// A Statement is said about a release or an artifact of it, and signed.
type Statement struct {
	File          string // of its bundle, in the release's folder
	PredicateType string
	Artifact      release.Artifact // an image or index, whose referrer the bundle becomes; else its zero value
	Content       []byte
}

// Statements returns what is said about a release. Description is the content of its release.json, and read returns the content of
// another of its files.
func Statements(r *release.Release, description []byte, read func(name string) ([]byte, error)) ([]Statement, error) {
	made, err := provenance.Of(r, description)
	if err != nil {
		return nil, err
	}
	documents := map[string]release.Artifact{} // by image
	for _, a := range r.Artifacts {
		if a.Kind == release.SBOM && len(a.Of) == 1 && strings.HasSuffix(a.Name, ".spdx.json") {
			documents[a.Of[0]] = a
		}
	}
	var all []Statement
	for _, m := range made {
		s := Statement{File: bundle(m.Name, "provenance"), PredicateType: provenance.PredicateType, Content: m.Content}
		if m.Artifact.Kind != release.Image && m.Artifact.Kind != release.Index {
			all = append(all, s)
			continue
		}
		s.Artifact = m.Artifact
		all = append(all, s)
		signature, err := about(m.Artifact, ImageSignature, json.RawMessage("{}"))
		if err != nil {
			return nil, err
		}
		all = append(all, Statement{bundle(m.Name, "signature"), ImageSignature, m.Artifact, signature})
		document, ok := documents[m.Artifact.Name]
		if !ok {
			continue
		}
		data, err := read(document.Path)
		if err != nil {
			return nil, err
		}
		if fmt.Sprintf("%x", sha256.Sum256(data)) != document.SHA256 {
			return nil, fmt.Errorf("%s is not what %s says", document.Path, release.File)
		}
		spdx, err := about(m.Artifact, SPDXDocument, data)
		if err != nil {
			return nil, err
		}
		all = append(all, Statement{bundle(m.Name, "spdx"), SPDXDocument, m.Artifact, spdx})
	}
	return all, nil
}

// Names lists the files of the bundles of statements about a release.
func Names(r *release.Release) []string {
	documents := map[string]bool{}
	for _, a := range r.Artifacts {
		if a.Kind == release.SBOM && len(a.Of) == 1 {
			documents[a.Of[0]] = true
		}
	}
	names := []string{bundle("", "provenance")}
	for name, a := range provenance.Names(r) {
		names = append(names, bundle(name, "provenance"))
		if a.Kind == release.Image || a.Kind == release.Index {
			names = append(names, bundle(name, "signature"))
			if documents[a.Name] {
				names = append(names, bundle(name, "spdx"))
			}
		}
	}
	return names
}

// bundle names the file with the bundle of a statement.
func bundle(name, kind string) string {
	return path.Join(release.Attestations, strings.TrimPrefix(name+"."+kind, ".")+release.BundleSuffix)
}

// about returns a statement about an image, by digest alone, as clients compare it.
func about(image release.Artifact, predicateType string, predicate json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Type          string               `json:"_type"`
		Subject       []provenance.Subject `json:"subject"`
		PredicateType string               `json:"predicateType"`
		Predicate     json.RawMessage      `json:"predicate"`
	}{provenance.StatementType, []provenance.Subject{{Name: image.Name, Digest: map[string]string{"sha256": image.SHA256}}},
		predicateType, predicate})
	return bytes.TrimSpace(b.Bytes()), err
}
