package bundle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
)

// Names in a bundle.
const (
	requestFile = "bundle.json"
	folder      = "release" // has the release's files
	blobs       = "blobs/sha256"
)

// nameAnnotation is how containerd and Docker find the names of images in a layout, besides sign.RefName.
const nameAnnotation = "io.containerd.image.name"

// maxManifest is the size of the largest manifest that is read, in bytes. Registries have the same limit.
const maxManifest = 4 << 20

// maxSmall is the size, in bytes, of the largest file that is read into memory: a release.json of all platforms takes a tenth.
const maxSmall = 32 << 20

// A file is a file of a bundle. Either its content or its digest is known.
type file struct {
	name   string
	data   []byte
	sum    string // SHA-256, in hex
	signed bool   // it is a signature, and data is what the source has of it
}

// A source is where a bundle's files are read from: a release's folder and a layout, or a bundle.
type source struct {
	release fs.FS
	layout  fs.FS
}

// A MissingError is an image, or a part of it, that a source lacks.
type MissingError struct {
	Image string
	Blob  string // its path
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the image %s is not whole: there is no %s", e.Image, e.Blob)
}

// contents returns the files of a bundle by their names. What is signed is not checked here.
func (q Request) contents(r *release.Release, description []byte, from source) ([]file, error) {
	all := map[string]file{}
	add := func(name string, data []byte) { all[name] = file{name: name, data: data} }
	for _, a := range q.files(r) {
		name := path.Join(folder, a.Path)
		all[name] = file{name: name, sum: a.SHA256}
	}
	add(path.Join(folder, release.File), description)
	statements, err := q.statements(r, description, from.release)
	if err != nil {
		return nil, err
	}
	if err := signatures(statements, from.release, all); err != nil {
		return nil, err
	}
	referrers, err := sign.Referrers(r, from.release, statements)
	if err != nil {
		return nil, err
	}
	for _, made := range referrers {
		for hash, data := range made.Blobs {
			add(path.Join(blobs, hash.Hex), data)
		}
	}
	images := q.images(r)
	manifests := map[string]v1.Manifest{} // by the digests of images
	for _, i := range images {
		for _, a := range i.Parts() {
			m, data, err := from.manifest(i, a)
			if err != nil {
				return nil, err
			}
			add(path.Join(blobs, a.SHA256), data)
			if a.Kind != release.Image {
				continue
			}
			manifests[a.SHA256] = m
			for _, d := range append([]v1.Descriptor{m.Config}, m.Layers...) {
				name := path.Join(blobs, d.Digest.Hex)
				if _, err := fs.Stat(from.layout, name); err != nil || d.Digest.Algorithm != "sha256" {
					return nil, errors.Join(&MissingError{i.Names[0], name}, notExist(err))
				}
				all[name] = file{name: name, sum: d.Digest.Hex}
			}
		}
	}
	add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	add("images.txt", list(images))
	for name, marshal := range map[string]func() ([]byte, error){
		requestFile:     q.marshal,
		"index.json":    func() ([]byte, error) { return json.Marshal(index(images, referrers)) },
		"manifest.json": func() ([]byte, error) { return json.Marshal(docker(images, manifests)) },
	} {
		data, err := marshal()
		if err != nil {
			return nil, err
		}
		add(name, data)
	}
	return slices.SortedFunc(maps.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) }), nil
}

// statements returns those that a bundle has.
func (q Request) statements(r *release.Release, description []byte, in fs.FS) ([]sign.Statement, error) {
	return sign.StatementsAbout(r, description, q.about(r), func(name string) ([]byte, error) { return readSmall(in, name, maxSmall) })
}

// notExist returns an error unless it says that there is no file.
func notExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// signatures adds the signatures that a release has: of files, and of statements.
func signatures(statements []sign.Statement, in fs.FS, all map[string]file) error {
	added, err := sign.Added(in)
	if err != nil {
		return err
	}
	names := release.Signatures()
	for _, s := range statements {
		names = append(names, s.File)
	}
	for _, below := range append([]string{""}, added...) {
		for _, name := range names {
			name = path.Join(below, name)
			data, err := readSmall(in, name, maxSmall)
			if errors.Is(err, fs.ErrNotExist) {
				continue // verification says whether it should be there
			}
			if err != nil {
				return err
			}
			name = path.Join(folder, name)
			all[name] = file{name: name, data: data, signed: true}
		}
	}
	return nil
}

// manifest reads the manifest of an image or index, and checks its digest.
func (s source) manifest(i Image, a release.Artifact) (m v1.Manifest, data []byte, err error) {
	name := path.Join(blobs, a.SHA256)
	data, err = readSmall(s.layout, name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil, &MissingError{i.Names[0], name}
	}
	if err != nil {
		return m, nil, err
	}
	if fmt.Sprintf("%x", sha256.Sum256(data)) != a.SHA256 {
		return m, nil, fmt.Errorf("%s is not the manifest of the image %s", name, i.Names[0])
	}
	return m, data, json.Unmarshal(data, &m)
}

// readSmall reads a file that somebody else may have made.
func readSmall(in fs.FS, name string, limit int64) ([]byte, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, err
}

// list returns the content of images.txt.
func list(images []Image) []byte {
	var b bytes.Buffer
	for _, i := range images {
		for _, name := range i.Names {
			fmt.Fprintf(&b, "%s@sha256:%s\n", name, i.Artifact.SHA256)
		}
	}
	return b.Bytes()
}

// index returns the index of the layout: the images by their names, then what refers to them. Unlike in other layouts, no tag names lists
// of referrers: importers would take them for images.
func index(images []Image, referrers []sign.Referrer) v1.IndexManifest {
	all := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, i := range images {
		d := v1.Descriptor{MediaType: types.MediaType(i.Artifact.MediaType), Size: i.Artifact.Size,
			Digest: v1.Hash{Algorithm: "sha256", Hex: i.Artifact.SHA256}}
		if p := i.Artifact.Platform; i.Artifact.Kind == release.Image {
			d.Platform = &v1.Platform{OS: p.OS, Architecture: p.Arch}
		}
		for _, name := range i.Names {
			d.Annotations = map[string]string{sign.RefName: name, nameAnnotation: name}
			all.Manifests = append(all.Manifests, d)
		}
	}
	for _, made := range referrers {
		all.Manifests = append(all.Manifests, made.Descriptor)
	}
	return all
}

// A loadable is an image in a manifest.json. See https://github.com/moby/docker-image-spec.
type loadable struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// docker returns what manifest.json lists.
func docker(images []Image, manifests map[string]v1.Manifest) []loadable {
	var all []loadable
	for _, i := range images {
		for _, a := range i.Parts() {
			m, ok := manifests[a.SHA256]
			if !ok {
				continue // an index
			}
			l := loadable{Config: path.Join(blobs, m.Config.Digest.Hex), RepoTags: i.Names}
			if i.Artifact.Kind == release.Index {
				l.RepoTags = []string{a.Name}
			}
			for _, layer := range m.Layers {
				l.Layers = append(l.Layers, path.Join(blobs, layer.Digest.Hex))
			}
			all = append(all, l)
		}
	}
	return all
}
