package diff

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/unpack"
)

// sumOf returns the SHA-256 of a member, in hex, which it computes if it is not known.
func sumOf(m member) (string, error) {
	if m.sum != "" || m.open == nil {
		return m.sum, nil
	}
	r, err := m.open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum, _, err := checksum.SHA256(r)
	return sum, err
}

func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// archives compares two archives: members by name, and their order. f holds what is known of them already.
func (c *walker) archives(a, b member, f File) error {
	dir, err := os.MkdirTemp("", "slipway-diff-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	x, err := c.unpack(a, path.Join(dir, "a"))
	if err != nil {
		return fmt.Errorf("%s in A: %w", f.Name, err)
	}
	y, err := c.unpack(b, path.Join(dir, "b"))
	if err != nil {
		return fmt.Errorf("%s in B: %w", f.Name, err)
	}
	if x.members["manifest.json"].open != nil && y.members["manifest.json"].open != nil {
		return c.images(x, y, f)
	}
	return c.members(x, y, f)
}

// An unpacked holds the content of an archive.
type unpacked struct {
	order   []string
	members map[string]member
}

// unpack reads an archive, and writes the contents of its members to files in dir.
func (c *walker) unpack(m member, dir string) (*unpacked, error) {
	r, err := m.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	u := &unpacked{members: map[string]member{}}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	in, err := unpack.Decompress(r)
	if err != nil {
		return nil, err
	}
	for h, err := range unpack.Members(c.ctx, in) {
		if err != nil {
			return nil, err
		}
		if u.members[h.Name].header != "" {
			return nil, fmt.Errorf("%s exists twice", h.Name)
		}
		n := member{header: fmt.Sprintf("%c %s %d:%d %s:%s %s %q %v", h.Typeflag, h.FileInfo().Mode(), h.Uid, h.Gid, h.Uname, h.Gname,
			h.ModTime.UTC().Format("2006-01-02T15:04:05Z"), h.Linkname, h.PAXRecords)}
		if h.Typeflag == tar.TypeReg {
			if n, err = keep(n, h, fmt.Sprintf("%s/%d", dir, len(u.order))); err != nil {
				return nil, err
			}
		}
		u.order = append(u.order, h.Name)
		u.members[h.Name] = n
	}
	_, err = io.Copy(io.Discard, in) // what follows the last member must be readable, too
	return u, err
}

// keep writes the content of m to a file.
func keep(m member, r io.Reader, file string) (member, error) {
	f, err := os.Create(file)
	if err != nil {
		return m, err
	}
	m.sum, _, err = checksum.SHA256(io.TeeReader(r, f))
	m.open = func() (io.ReadCloser, error) { return os.Open(file) }
	return m, cmp.Or(err, f.Close())
}

// members compares the members of two archives.
func (c *walker) members(x, y *unpacked, f File) error {
	before := len(c.report.Files)
	for _, name := range names(x.members, y.members) {
		m, inA := x.members[name]
		n, inB := y.members[name]
		g := File{Name: f.Name + ":" + name}
		switch {
		case !inA:
			g.add("file", "only in B")
		case !inB:
			g.add("file", "only in A")
		default:
			if m.header != n.header {
				g.add("mode", "%s and %s", m.header, n.header)
			}
			if (m.open == nil) != (n.open == nil) {
				break
			}
			if m.open != nil {
				if err := c.files(g.Name, m, n, g.Reasons); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				continue
			}
		}
		c.done(g)
	}
	if !slices.Equal(x.order, y.order) {
		f.add("archive", "its members are in another order")
	}
	if c.differs(before) {
		f.add("archive", "holds files that are different")
	} else if len(f.Reasons) == 0 {
		f.add("archive", "compressed or padded in another way; its members are the same")
	}
	c.done(f)
	return nil
}

// An image holds the manifest and the configuration of a saved container image.
type image struct {
	tarball.Descriptor
	config v1.ConfigFile
}

// image reads the manifest and the configuration of a saved container image.
func (u *unpacked) image() (*image, error) {
	var list tarball.Manifest
	if err := u.json("manifest.json", &list); err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("manifest.json: %d images, want 1", len(list))
	}
	i := &image{Descriptor: list[0]}
	if err := u.json(i.Config, &i.config); err != nil {
		return nil, err
	}
	for _, l := range i.Layers {
		if u.members[path.Clean(l)].open == nil {
			return nil, fmt.Errorf("manifest.json: no layer %s", l)
		}
	}
	return i, nil
}

func (u *unpacked) json(name string, value any) error {
	m := u.members[path.Clean(name)]
	if m.open == nil {
		return fmt.Errorf("no member %s", name)
	}
	text, err := m.read()
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// images compares the tags, configuration and layers of two container images that were saved as archives. The names of files in
// such an archive are sums, so they differ only if the contents do.
func (c *walker) images(x, y *unpacked, f File) error {
	a, err := x.image()
	if err != nil {
		return fmt.Errorf("%s in A: %w", f.Name, err)
	}
	b, err := y.image()
	if err != nil {
		return fmt.Errorf("%s in B: %w", f.Name, err)
	}
	if !slices.Equal(a.RepoTags, b.RepoTags) {
		f.add("image", "tags %q and %q", a.RepoTags, b.RepoTags)
	}
	if len(x.order) != len(y.order) {
		f.add("image", "%d and %d members", len(x.order), len(y.order))
	}
	a.config.RootFS.DiffIDs, b.config.RootFS.DiffIDs = nil, nil // the layers themselves are compared
	ca, errA := json.Marshal(a.config)
	cb, errB := json.Marshal(b.config)
	if err := cmp.Or(errA, errB); err != nil {
		return err
	}
	if i := firstDifference(ca, cb); !bytes.Equal(ca, cb) {
		from := max(0, i-20)
		f.add("image", "configuration …%s… and …%s…", ca[from:min(len(ca), i+40)], cb[from:min(len(cb), i+40)])
	}
	for _, name := range x.order { // modes and times
		if m, n := x.members[name], y.members[name]; n.header != "" && m.header != n.header {
			f.add("mode", "%s: %s and %s", name, m.header, n.header)
		}
	}
	if len(a.Layers) != len(b.Layers) {
		f.add("image", "%d and %d layers", len(a.Layers), len(b.Layers))
		c.done(f)
		return nil
	}
	before := len(c.report.Files)
	for i := range a.Layers {
		m, n := x.members[path.Clean(a.Layers[i])], y.members[path.Clean(b.Layers[i])]
		if err := c.files(fmt.Sprintf("%s:layer%d.tar", f.Name, i+1), m, n, nil); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	if c.differs(before) {
		f.add("image", "has layers that are different")
	} else if len(f.Reasons) == 0 {
		f.add("archive", "its configuration or manifest is written in another way")
	}
	c.done(f)
	return nil
}
