package why

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/release"
)

// Bounds of what is read of other people's tarballs.
const (
	maxMembers = 1 << 20
	maxSums    = 16 << 20 // bytes of all lists of packages' files in an image
)

// errEnough says that nothing more of a tarball need be read.
var errEnough = errors.New("it is found")

// errAbsent says that a tarball is not in the release's folder.
var errAbsent = errors.New("it is not there")

// An entry is a file or link of a tarball.
type entry struct {
	name, link string
	content    io.Reader // of a file
}

// A file is one that is looked for in a tarball.
type file struct {
	name   string
	others []string // names of the other members
	there  bool
	sum    string // SHA-256 of a file
	link   string // where a symbolic link leads
}

func (f *file) look(e entry) error {
	if e.name != f.name {
		f.others = append(f.others, e.name)
		return nil
	}
	f.there, f.link = true, e.link
	if e.link == "" {
		var err error
		if f.sum, _, err = checksum.SHA256(e.content); err != nil {
			return err
		}
	}
	return errEnough
}

// inTarball calls see for each file and symbolic link of a tarball in the release's folder. The error is errAbsent if it is not there.
func (w *world) inTarball(ctx context.Context, a release.Artifact, see func(entry) error) error {
	f, err := os.Open(w.path(a))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", w.path(a), errAbsent)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", a.Path, err)
	}
	if err := members(ctx, z, see); err != nil {
		return fmt.Errorf("%s: %w", a.Path, err)
	}
	return nil
}

// members calls see for each file and symbolic link of a tar.
func members(ctx context.Context, from io.Reader, see func(entry) error) error {
	t := tar.NewReader(from)
	for range maxMembers {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e := entry{name: clean(h.Name), content: t}
		switch h.Typeflag {
		case tar.TypeReg:
		case tar.TypeSymlink:
			e.link = h.Linkname
		default:
			continue
		}
		if err := see(e); err != nil {
			return err
		}
	}
	return fmt.Errorf("it has more than %d members", maxMembers)
}

// An imaged file is in a layer of an image.
type imaged struct{ sum, link, layer string }

// contents are the files of an image.
type contents struct {
	names  []string
	files  map[string]imaged // those looked for, and links
	owners map[string]string // package, by file
	sums   int               // bytes of lists read
}

// at returns a file of an image.
func (c *contents) at(name string) (imaged, bool) {
	f, ok := c.files[name]
	return f, ok
}

// owner returns the package that a file is of, or "". Of a link that no package lists, as it was chosen among alternatives, it is that of
// what the link leads to.
func (c *contents) owner(name string) string {
	for range 10 { // no chain of links is longer
		if owner := c.owners[name]; owner != "" {
			return owner
		}
		link := c.files[name].link
		if link == "" {
			return ""
		}
		if !path.IsAbs(link) {
			link = path.Join(path.Dir(name), link)
		}
		name = clean(link)
	}
	return ""
}

// inImage reads an image from its archive in a tarball, looking for a file.
func (w *world) inImage(ctx context.Context, image release.Artifact, member string) (*contents, error) {
	for _, archive := range w.Artifacts {
		if archive.Kind != release.Archive || !slices.Contains(archive.Of, image.Name) {
			continue
		}
		for _, t := range w.Artifacts {
			for _, m := range t.Members {
				if m.Artifact != archive.Name {
					continue
				}
				c := &contents{files: map[string]imaged{}, owners: map[string]string{}}
				err := w.inTarball(ctx, t, func(e entry) error {
					if e.name != m.Path {
						return nil
					}
					return cmp.Or(c.archive(ctx, e.content, image, member), errEnough)
				})
				switch {
				case errors.Is(err, errAbsent):
					continue
				case errors.Is(err, errEnough):
					return c, nil
				case err == nil:
					err = fmt.Errorf("%s lacks %s, which release.json names", t.Name, m.Path)
				}
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("no tarball that is here holds the image %s", image.Name)
}

// archive reads the layers in an image's archive, lowest first, as docker save writes them: tars, of the digests' names.
func (c *contents) archive(ctx context.Context, from io.Reader, image release.Artifact, member string) error {
	return members(ctx, from, func(e entry) error {
		hex, _, _ := strings.Cut(path.Base(e.name), ".")
		i := slices.IndexFunc(image.Layers, func(l release.Layer) bool { return l.DiffID == "sha256:"+hex || l.Digest == "sha256:"+hex })
		if i < 0 || e.link != "" || strings.HasSuffix(e.name, ".json") {
			return nil
		}
		content := e.content
		if strings.HasSuffix(e.name, ".gz") {
			z, err := gzip.NewReader(content)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			content = z
		}
		return members(ctx, content, func(e entry) error { return c.look(e, image.Layers[i].Digest, member) })
	})
}

// look looks at a file or link in a layer.
func (c *contents) look(e entry, layer, member string) error {
	c.names = append(c.names, e.name)
	switch {
	case e.link != "":
		c.files[e.name] = imaged{link: e.link, layer: layer}
	case e.name == member:
		sum, _, err := checksum.SHA256(e.content)
		c.files[e.name] = imaged{sum: sum, layer: layer}
		return err
	case strings.HasPrefix(e.name, debian.StatusFolder) && strings.HasSuffix(e.name, debian.SumsSuffix):
		owner := strings.TrimSuffix(strings.TrimPrefix(e.name, debian.StatusFolder), debian.SumsSuffix)
		data, err := io.ReadAll(io.LimitReader(e.content, maxSums))
		if c.sums += len(data); c.sums >= maxSums {
			return errors.New("the lists of its packages' files are too long")
		}
		for line := range strings.Lines(string(data)) {
			if _, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
				c.owners[clean(name)] = owner
			}
		}
		return err
	}
	return nil
}
