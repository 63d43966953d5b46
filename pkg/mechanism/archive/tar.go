package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// Tar writes the entries as an uncompressed tar file. Every member has the time t, in whole seconds; the
// zero time is 1970.
func Tar(w io.Writer, entries []Entry, t time.Time) error {
	b, err := NewTarball(entries, t)
	if err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// A Tarball is an uncompressed tar file that is packed while it is read, as often as needed, so an image's layer need not be on
// disk. Reading fails if one of its files has changed since NewTarball.
type Tarball struct {
	members []member
	size    int64
}

// NewTarball returns the tar file that Tar would write.
func NewTarball(entries []Entry, t time.Time) (*Tarball, error) {
	members, err := layout(entries, t)
	if err != nil {
		return nil, err
	}
	size := int64(endSize)
	for i := range members {
		size += members[i].size()
	}
	return &Tarball{members: members, size: size}, nil
}

// Tarball returns the tar file that Tar would write at the packer's time. When it is read, a file with a known sum that was packed or
// prepared before is checked by its CRC-32, which detects accidents but no intent, and any other as by NewTarball.
func (p *Packer) Tarball(entries []Entry) (*Tarball, error) {
	b, err := NewTarball(entries, p.Time)
	if err != nil || p.Cache == "" {
		return b, err
	}
	cache, err := openCache(p.Cache)
	if err != nil {
		return nil, err
	}
	for i := range b.members {
		c := b.members[i].content
		if c == nil || c.sum == "" || c.size < minSegment {
			continue
		}
		if s, ok := cache.split(c.sum, c.size); ok {
			c.crc = s.CRC
		}
	}
	return b, nil
}

// Parts returns the files of the tar file whose sums are known.
func (b *Tarball) Parts() []Part {
	var parts []Part
	var off int64
	for i := range b.members {
		m := &b.members[i]
		if m.content != nil && m.content.sum != "" {
			parts = append(parts, Part{Off: off + int64(len(m.header)), Size: m.content.size, Sum: m.content.sum})
		}
		off += m.size()
	}
	return parts
}

// Size returns the length of the tar file in bytes.
func (b *Tarball) Size() int64 { return b.size }

// Open returns a reader of the tar file from its start. The reader holds at most one file open.
func (b *Tarball) Open() io.ReadCloser { return &tarReader{rest: b.members} }

// WriteTo writes the tar file.
func (b *Tarball) WriteTo(w io.Writer) (int64, error) {
	r := b.Open()
	defer r.Close()
	return io.CopyBuffer(w, r, make([]byte, 256<<10))
}

type tarReader struct {
	rest []member  // not begun yet
	cur  io.Reader // what is left of the current member; nil between members
	src  io.Closer // its content, if it is open
	done bool      // the end was begun
}

func (r *tarReader) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if r.cur == nil {
			if err := r.next(); err != nil {
				return 0, err
			}
		}
		n, err := r.cur.Read(p)
		if err == io.EOF {
			r.cur, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

func (r *tarReader) next() error {
	if err := r.Close(); err != nil {
		return err
	}
	if r.done {
		return io.EOF
	}
	if len(r.rest) == 0 {
		r.done = true
		r.cur = bytes.NewReader(zeros[:endSize])
		return nil
	}
	m := &r.rest[0]
	r.rest = r.rest[1:]
	header := bytes.NewReader(m.header)
	if m.content == nil {
		r.cur = header
		return nil
	}
	src, err := m.content.open()
	if err != nil {
		return err
	}
	r.src = src
	r.cur = io.MultiReader(
		header,
		m.content.reader(context.Background(), src, m.content.whole()),
		bytes.NewReader(zeros[:padding(m.content.size)]),
	)
	return nil
}

func (r *tarReader) Close() error {
	if r.src == nil {
		return nil
	}
	err := r.src.Close()
	r.src = nil
	return err
}

// ReadTar reads a file that Tar wrote into memory. It returns the files and links, without folders.
func ReadTar(name string) ([]Entry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []Entry
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		e := Entry{Name: path.Clean(h.Name), Mode: h.FileInfo().Mode(), Link: h.Linkname}
		if h.Typeflag == tar.TypeReg {
			if e.Data, err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("read %s: %s: %w", name, h.Name, err)
			}
		}
		entries = append(entries, e)
	}
}
