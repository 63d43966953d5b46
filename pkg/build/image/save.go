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
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Save writes an image as a docker archive with the given tags, in their order. Tags are complete: with registry and version.
func Save(ctx context.Context, w io.Writer, img v1.Image, tags []string) error {
	for _, t := range tags {
		if _, err := name.NewTag(t, name.StrictValidation); err != nil {
			return fmt.Errorf("save image: tag %q: %w", t, err)
		}
	}
	a, err := plan(img, tags)
	if err != nil {
		return fmt.Errorf("save image: %w", err)
	}
	if err := a.write(ctx, w); err != nil {
		return fmt.Errorf("save image: %w", err)
	}
	return nil
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
	return member{digest.Hex + ".tar", size, digest.Hex, l.Uncompressed}, nil
}

func (a archived) write(ctx context.Context, w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, m := range a.members {
		if err := m.write(ctx, tw, a.created); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return tw.Close()
}

func (m member) write(ctx context.Context, tw *tar.Writer, created time.Time) error {
	r, err := m.open()
	if err != nil {
		return err
	}
	defer r.Close()
	h := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: 0o644, Size: m.size, ModTime: created}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
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
