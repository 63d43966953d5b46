package sbom

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // SPDX wants it; nothing rests on it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/release"
)

// Folder is where a release's folder has the documents of images.
const Folder = "sbom"

// The names of the documents of a whole release, and of its sources.
const (
	ofRelease = "kubernetes-release"
	ofSource  = "kubernetes-source"
)

// The suffixes of documents.
const (
	spdxSuffix      = ".spdx.json"
	cyclonedxSuffix = ".cdx.json"
)

// Artifacts returns the documents that a release has, without digests and sizes: of all of it, of its sources and of each image, in both
// formats.
func Artifacts(r *release.Release, action string) []release.Artifact {
	var all []release.Artifact
	add := func(name string, of ...string) {
		for _, form := range []struct{ suffix, mediaType string }{
			{spdxSuffix, "application/spdx+json"}, {cyclonedxSuffix, "application/vnd.cyclonedx+json"},
		} {
			all = append(all, release.Artifact{
				Name: name + form.suffix, Path: name + form.suffix, Kind: release.SBOM, MediaType: form.mediaType, Of: of, Action: action,
			})
		}
	}
	var files []string
	for _, a := range r.Artifacts {
		switch {
		case a.Kind == release.Tarball || a.Kind == release.Inputs || a.Kind == release.Deb || a.Kind == release.RPM:
			files = append(files, a.Name)
		case a.Kind == release.Archive && len(a.Of) == 1:
			add(path.Join(Folder, strings.TrimSuffix(path.Base(a.Name), ".tar")+"-"+a.Platform.Dash()), a.Of[0])
		}
	}
	slices.Sort(files)
	add(ofRelease, files...)
	for _, in := range r.Inputs {
		if in.Kind == release.Source {
			add(ofSource, in.Name)
		}
	}
	return all
}

// Make returns the content of a document of a release. Sources returns the files in the source tarball.
func Make(r *release.Release, artifact release.Artifact, sources func() ([]File, error)) ([]byte, error) {
	base, isSPDX := strings.CutSuffix(artifact.Name, spdxSuffix)
	base, isCycloneDX := strings.CutSuffix(base, cyclonedxSuffix)
	if isSPDX == isCycloneDX || len(artifact.Of) == 0 {
		return nil, fmt.Errorf("%s: no such bill of materials", artifact.Name)
	}
	var d *Document
	var err error
	switch base {
	case ofRelease:
		d, err = Release(r)
	case ofSource:
		var files []File
		if files, err = sources(); err == nil {
			d, err = Source(r, files)
		}
	default:
		d, err = Of(r, artifact.Of[0], path.Base(base))
	}
	if err != nil {
		return nil, err
	}
	if isSPDX {
		return d.SPDX()
	}
	return d.CycloneDX()
}

// maxSource bounds what a source tarball unpacks to, in bytes.
const maxSource = 1 << 30

// Members lists the files in a gzipped tarball.
func Members(tarball io.Reader) ([]File, error) {
	z, err := gzip.NewReader(tarball)
	if err != nil {
		return nil, err
	}
	var files []File
	left := &io.LimitedReader{R: z, N: maxSource}
	for r := tar.NewReader(left); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) && left.N > 0 {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		short, long := sha1.New(), sha256.New() //nolint:gosec // SPDX wants it
		if _, err := io.Copy(io.MultiWriter(short, long), r); err != nil {
			return nil, err
		}
		files = append(files, File{Name: h.Name, SHA1: hex.EncodeToString(short.Sum(nil)), SHA256: hex.EncodeToString(long.Sum(nil))})
	}
}
