package image

import (
	"archive/tar"
	"bytes"
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

	"slipway.build/pkg/mechanism/archive"
)

// Save writes an image as a docker archive with the given tags, in their order. Tags are complete: with registry and version.
func Save(ctx context.Context, w io.Writer, img v1.Image, tags []string) error {
	_, err := writeArchive(ctx, w, img, tags)
	return err
}

// A written archive is known by where its members are, and by its CRC-32.
type written struct {
	offsets map[string]int64 // where the members' contents begin, in bytes, by their names
	crc     uint32           // CRC-32 of all
}

// parts returns the files in layers of the archive.
func (w written) parts(layers []*layer) []archive.Part {
	var all []archive.Part
	for _, l := range layers {
		off, ok := w.offsets[layerName(l.digest)]
		if !ok {
			continue
		}
		for _, part := range l.tarball.Parts() {
			part.Off += off
			all = append(all, part)
		}
	}
	return all
}

// writeArchive is Save, and says what it has written.
func writeArchive(ctx context.Context, w io.Writer, img v1.Image, tags []string) (written, error) {
	for _, t := range tags {
		if _, err := name.NewTag(t, name.StrictValidation); err != nil {
			return written{}, fmt.Errorf("save image: tag %q: %w", t, err)
		}
	}
	a, err := plan(img, tags)
	if err != nil {
		return written{}, fmt.Errorf("save image: %w", err)
	}
	all, err := a.write(ctx, w)
	if err != nil {
		return written{}, fmt.Errorf("save image: %w", err)
	}
	return all, nil
}

// An archived image is the members of its archive, in order, and the time of all of them.
type archived struct {
	created time.Time
	members []member
}

type member struct {
	name   string
	size   int64  // bytes
	sha256 string // of the content, in hex
	open   func() (io.ReadCloser, error)
}

func plan(img v1.Image, tags []string) (archived, error) {
	config, err := img.RawConfigFile()
	if err != nil {
		return archived{}, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return archived{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return archived{}, err
	}

	configMember := inMemory(".json", config)
	d := tarball.Descriptor{Config: configMember.name, RepoTags: tags}
	members := []member{configMember}
	seen := map[string]bool{}
	for _, l := range layers {
		m, err := uncompressed(l)
		if err != nil {
			return archived{}, err
		}
		d.Layers = append(d.Layers, m.name)
		if !seen[m.name] {
			seen[m.name] = true
			members = append(members, m)
		}
	}

	manifest, err := json.Marshal(tarball.Manifest{d})
	if err != nil {
		return archived{}, err
	}
	first := inMemory("", manifest)
	first.name = "manifest.json"
	return archived{file.Created.Time, append([]member{first}, members...)}, nil
}

// inMemory returns a member that is named by the sum of its content.
func inMemory(ext string, content []byte) member {
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	return member{digest + ext, int64(len(content)), digest, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

// uncompressed returns a layer's member. Only the size of a plain layer is known beforehand.
func uncompressed(l v1.Layer) (member, error) {
	digest, err := l.Digest()
	if err != nil {
		return member{}, err
	}
	diffID, err := l.DiffID()
	if err != nil {
		return member{}, err
	}
	if digest != diffID {
		return member{}, fmt.Errorf("layer %s: is compressed", digest)
	}
	size, err := l.Size()
	if err != nil {
		return member{}, err
	}
	return member{layerName(digest), size, digest.Hex, l.Uncompressed}, nil
}

// layerName returns the name of a layer's member.
func layerName(digest v1.Hash) string { return digest.Hex + ".tar" }

func (a archived) write(ctx context.Context, w io.Writer) (written, error) {
	m := &meter{w: w}
	tw := tar.NewWriter(m)
	offsets := map[string]int64{}
	for _, member := range a.members {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: member.name, Mode: 0o644, Size: member.size, ModTime: a.created}
		err := tw.WriteHeader(h)
		offsets[member.name] = m.n
		if err == nil {
			err = member.write(ctx, tw)
		}
		if err != nil {
			return written{}, fmt.Errorf("%s: %w", member.name, err)
		}
	}
	err := tw.Close()
	return written{offsets, m.crc}, err
}

// A meter counts what is written, and computes its CRC-32.
type meter struct {
	w   io.Writer
	n   int64 // bytes
	crc uint32
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.n += int64(n)
	m.crc = crc32.Update(m.crc, crc32.IEEETable, p[:n])
	return n, err
}

// write writes the content behind its header.
func (m member) write(ctx context.Context, tw *tar.Writer) error {
	r, err := m.open()
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(tw, sum), cancelable{ctx, r})
	if err != nil {
		return err
	}
	if n != m.size || hex.EncodeToString(sum.Sum(nil)) != m.sha256 {
		return errors.New("content changed since the image was built")
	}
	return nil
}

// A cancelable reader ends with ctx.
type cancelable struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
