package why

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
)

// maxSums bounds, in bytes, all lists of packages' files in an image.
const maxSums = 16 << 20

// isFile reports whether a member is a file or a symbolic link.
func isFile(m unpack.Member) bool { return m.Typeflag == tar.TypeReg || m.Typeflag == tar.TypeSymlink }

// read returns the SHA-256 of a file in a tarball, or, of a symbolic link, where it leads.
func (w *world) read(ctx context.Context, a release.Artifact, member string) (sum, link string, err error) {
	var others []string
	for m, err := range unpack.MembersOf(ctx, w.path(a)) {
		if err != nil {
			return "", "", err
		}
		switch name := clean(m.Name); {
		case !isFile(m):
		case name != member:
			others = append(others, name)
		case m.Linkname != "":
			return "", m.Linkname, nil
		default:
			sum, _, err = checksum.SHA256(m)
			return sum, "", err
		}
	}
	return "", "", fmt.Errorf("%s has no member %s%s", a.Name, member, suggest.DidYouMean(suggest.Near(member, others)))
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
				c, err := w.readImage(ctx, t, m.Path, image, member)
				if !errors.Is(err, fs.ErrNotExist) {
					return c, err
				}
			}
		}
	}
	return nil, fmt.Errorf("no tarball that is here holds the image %s", image.Name)
}

// readImage reads an image from its archive, which is a file in a tarball.
func (w *world) readImage(ctx context.Context, t release.Artifact, archive string, image release.Artifact,
	member string) (*contents, error) {
	for m, err := range unpack.MembersOf(ctx, w.path(t)) {
		if err != nil {
			return nil, err
		}
		if clean(m.Name) == archive && m.Typeflag == tar.TypeReg {
			c := &contents{files: map[string]imaged{}, owners: map[string]string{}}
			return c, c.archive(ctx, m, image, member)
		}
	}
	return nil, fmt.Errorf("%s lacks %s, which release.json names", t.Name, archive)
}

// archive reads the layers in an image's archive, lowest first, as docker save writes them: tars, of the digests' names.
func (c *contents) archive(ctx context.Context, from io.Reader, image release.Artifact, member string) error {
	for m, err := range unpack.Members(ctx, from) {
		if err != nil {
			return err
		}
		hex, _, _ := strings.Cut(path.Base(m.Name), ".")
		i := slices.IndexFunc(image.Layers, func(l release.Layer) bool { return l.DiffID == "sha256:"+hex || l.Digest == "sha256:"+hex })
		if i < 0 || m.Typeflag != tar.TypeReg || strings.HasSuffix(m.Name, ".json") {
			continue
		}
		layer, err := unpack.Decompress(m)
		if err == nil {
			err = c.layer(ctx, layer, image.Layers[i].Digest, member)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

func (c *contents) layer(ctx context.Context, from io.Reader, digest, member string) error {
	for m, err := range unpack.Members(ctx, from) {
		if err == nil && isFile(m) {
			err = c.look(m, digest, member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look looks at a file or link in a layer.
func (c *contents) look(m unpack.Member, layer, member string) error {
	name := clean(m.Name)
	c.names = append(c.names, name)
	owner, listed := strings.CutSuffix(strings.TrimPrefix(name, debian.StatusFolder), debian.SumsSuffix)
	switch {
	case m.Linkname != "":
		c.files[name] = imaged{link: m.Linkname, layer: layer}
	case name == member:
		sum, _, err := checksum.SHA256(m)
		c.files[name] = imaged{sum: sum, layer: layer}
		return err
	case listed && strings.HasPrefix(name, debian.StatusFolder):
		data, err := io.ReadAll(io.LimitReader(m, maxSums))
		if c.sums += len(data); c.sums >= maxSums {
			return errors.New("the lists of its packages' files are too long")
		}
		for line := range strings.Lines(string(data)) {
			if _, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
				c.owners[clean(file)] = owner
			}
		}
		return err
	}
	return nil
}
