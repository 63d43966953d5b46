package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"
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

	document release.Artifact // the bill of materials that it consists of
	of       release.Artifact // what it is about; its zero value is the whole release
}

// Statements returns what is said about a release. Description is the content of its release.json, and read returns the content of
// another of its files.
func Statements(r *release.Release, description []byte, read func(name string) ([]byte, error)) ([]Statement, error) {
	return StatementsAbout(r, description, nil, read)
}

// StatementsAbout returns what is said about a release as a whole, and about some of its artifacts, or all if about is nil.
func StatementsAbout(r *release.Release, description []byte, about func(release.Artifact) bool,
	read func(name string) ([]byte, error)) ([]Statement, error) {
	made, err := provenance.Of(r, description)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(list(r, made), func(s Statement) bool { return about != nil && s.of.Name != "" && !about(s.of) })
	for i := range all {
		s := &all[i]
		switch s.PredicateType {
		case ImageSignature:
			s.Content, err = aboutImage(s.Artifact, ImageSignature, json.RawMessage("{}"))
		case SPDXDocument:
			var data []byte
			if data, err = read(s.document.Path); err != nil {
				return nil, err
			}
			if fmt.Sprintf("%x", sha256.Sum256(data)) != s.document.SHA256 {
				return nil, fmt.Errorf("%s is not what %s says", s.document.Path, release.File)
			}
			s.Content, err = aboutImage(s.Artifact, SPDXDocument, data)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Names lists the files of the bundles of statements about a release.
func Names(r *release.Release) []string {
	var names []string
	for _, s := range list(r, provenance.List(r)) {
		names = append(names, s.File)
	}
	return names
}

// list returns the statements about a release. Only provenance has its content.
func list(r *release.Release, made []provenance.Made) []Statement {
	documents := map[string]release.Artifact{} // by image
	for _, a := range r.Artifacts {
		if a.Kind == release.SBOM && len(a.Of) == 1 && strings.HasSuffix(a.Name, ".spdx.json") {
			documents[a.Of[0]] = a
		}
	}
	var all []Statement
	for _, m := range made {
		s := Statement{File: bundle(m.Name, "provenance"), PredicateType: provenance.PredicateType, Content: m.Content, of: m.Artifact}
		if m.Artifact.Kind != release.Image && m.Artifact.Kind != release.Index {
			all = append(all, s)
			continue
		}
		s.Artifact = m.Artifact
		all = append(all, s, Statement{
			File: bundle(m.Name, "signature"), PredicateType: ImageSignature, Artifact: m.Artifact, of: m.Artifact,
		})
		if document, ok := documents[m.Artifact.Name]; ok {
			all = append(all, Statement{
				File: bundle(m.Name, "spdx"), PredicateType: SPDXDocument, Artifact: m.Artifact, document: document, of: m.Artifact,
			})
		}
	}
	return all
}

// bundle names the file with the bundle of a statement.
func bundle(name, kind string) string {
	return path.Join(release.Attestations, strings.TrimPrefix(name+"."+kind, ".")+release.BundleSuffix)
}

// aboutImage returns a statement about an image, by digest alone, as clients compare it.
func aboutImage(image release.Artifact, predicateType string, predicate json.RawMessage) ([]byte, error) {
	text, err := release.EncodeJSON(struct {
		Type          string               `json:"_type"`
		Subject       []provenance.Subject `json:"subject"`
		PredicateType string               `json:"predicateType"`
		Predicate     json.RawMessage      `json:"predicate"`
	}{provenance.StatementType, []provenance.Subject{{Name: image.Name, Digest: map[string]string{"sha256": image.SHA256}}},
		predicateType, predicate}, "")
	return bytes.TrimSpace(text), err
}
