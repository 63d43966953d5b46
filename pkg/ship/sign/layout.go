package sign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/workdir"
	"slipway.build/pkg/release"
)

// RefName is the annotation of a layout's index that names images.
const RefName = "org.opencontainers.image.ref.name"

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
func Layout(ctx context.Context, dir, from, to string) error {
	r, statements, err := folder(dir).statements()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return workdir.In(ctx, filepath.Dir(to), "."+filepath.Base(to)+".slipway", func() {}, func(work string) error {
		w := layoutWriter{filepath.Join(work, "oci")}
		if err := errors.Join(w.link(from), os.Chmod(w.dir, 0o755)); err != nil {
			return err
		}
		if err := w.refer(r, folder(dir), statements); err != nil {
			return err
		}
		return atomicdir.Replace(w.dir, to)
	})
}

type layoutWriter struct{ dir string }

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
func (w layoutWriter) refer(r *release.Release, dir folder, statements []Statement) error {
	file := filepath.Join(w.dir, "index.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	referrers, err := Referrers(r, os.DirFS(string(dir)), statements)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: sign the release first", err)
	}
	if err != nil {
		return err
	}
	by := map[v1.Hash][]v1.Descriptor{}
	var order []v1.Hash
	for _, made := range referrers {
		if by[made.Subject] == nil {
			order = append(order, made.Subject)
		}
		by[made.Subject] = append(by[made.Subject], made.Descriptor)
		for hash, data := range made.Blobs {
			if err := w.blob(hash, data); err != nil {
				return err
			}
		}
	}
	for _, subject := range order {
		data, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: by[subject]})
		if err != nil {
			return err
		}
		d := describe(types.OCIImageIndex, data)
		if err := w.blob(d.Digest, data); err != nil {
			return err
		}
		d.Annotations = map[string]string{RefName: "sha256-" + subject.Hex}
		index.Manifests = append(index.Manifests, d)
		index.Manifests = append(index.Manifests, by[subject]...)
	}
	if data, err = json.Marshal(index); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil { // it is a link
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// blob writes a blob.
func (w layoutWriter) blob(hash v1.Hash, data []byte) error {
	file := blobFile(w.dir, hash.Hex)
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) { // one that is there may be a link to a file of the other layout
		err = os.WriteFile(file, data, 0o644)
	}
	return err
}
