package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"slipway.build/pkg/mechanism/archive"
)

// Save writes an image as a docker archive with the given tags, in their order. Tags are complete: with registry and version. Save returns
// the CRC-32 of the archive, and the files in it whose sums are known.
func (i *Image) Save(ctx context.Context, w io.Writer, tags []string) (crc uint32, parts []archive.Part, err error) {
	for _, t := range tags {
		if _, err := name.NewTag(t, name.StrictValidation); err != nil {
			return 0, nil, fmt.Errorf("save image: tag %q: %w", t, err)
		}
	}
	a := &archiver{w: w, ctx: ctx, created: i.created}
	a.tar = tar.NewWriter(a)
	if err := a.write(i, tags); err != nil {
		return 0, nil, fmt.Errorf("save image: %w", err)
	}
	return a.crc, a.parts, nil
}

// An archiver writes a docker archive. It counts what it has written.
type archiver struct {
	w       io.Writer
	tar     *tar.Writer // writes to the archiver
	ctx     context.Context
	created time.Time // of all members

	size  int64 // bytes until now
	crc   uint32
	parts []archive.Part
}

func (a *archiver) Write(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := a.w.Write(p)
	a.size += int64(n)
	a.crc = crc32.Update(a.crc, crc32.IEEETable, p[:n])
	return n, err
}

// write writes the manifest, the config, and each layer once.
func (a *archiver) write(i *Image, tags []string) error {
	config := describe(types.OCIConfigJSON, i.config).Digest
	d := tarball.Descriptor{Config: config.Hex + ".json", RepoTags: tags}
	for _, l := range i.layers {
		d.Layers = append(d.Layers, l.name())
	}
	manifest, err := json.Marshal(tarball.Manifest{d})
	if err != nil {
		return err
	}
	if err := a.add("manifest.json", manifest); err != nil {
		return err
	}
	if err := a.add(d.Config, i.config); err != nil {
		return err
	}
	written := map[v1.Hash]bool{}
	for _, l := range i.layers {
		if written[l.digest] {
			continue
		}
		written[l.digest] = true
		if err := a.addLayer(l); err != nil {
			return fmt.Errorf("%s: %w", l.name(), err)
		}
	}
	return a.tar.Close()
}

// name returns the name of a layer's member.
func (l *layer) name() string { return l.digest.Hex + ".tar" }

// add writes a member.
func (a *archiver) add(name string, content []byte) error {
	err := a.header(name, int64(len(content)))
	if err == nil {
		_, err = a.tar.Write(content)
	}
	return err
}

func (a *archiver) header(name string, size int64) error {
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: a.created})
}

func (a *archiver) addLayer(l *layer) error {
	if err := a.header(l.name(), l.Size()); err != nil {
		return err
	}
	for _, part := range l.Parts() {
		part.Off += a.size
		a.parts = append(a.parts, part)
	}
	sum := sha256.New()
	if _, err := l.WriteTo(io.MultiWriter(a.tar, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != l.digest.Hex {
		return errors.New("content changed since the image was built")
	}
	return nil
}
