package archive

import (
	"archive/tar"
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

// A Tarball is an uncompressed tar file that is packed while it is written, as often as needed, so an image's layer need not be on disk.
// Writing fails if one of its files has changed since NewTarball.
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

// WriteTo writes the tar file. It has at most one file open.
func (b *Tarball) WriteTo(w io.Writer) (int64, error) {
	buf := make([]byte, 256<<10)
	for i := range b.members {
		if err := b.members[i].write(w, buf); err != nil {
			return 0, err
		}
	}
	_, err := w.Write(zeros[:endSize])
	return b.size, err
}

func (m *member) write(w io.Writer, buf []byte) error {
	if _, err := w.Write(m.header); err != nil || m.content == nil {
		return err
	}
	src, err := m.content.open()
	if err != nil {
		return err
	}
	defer src.Close()
	content := m.content.reader(context.Background(), src, m.content.whole())
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, content, buf); err != nil {
		return err
	}
	_, err = w.Write(zeros[:m.padding])
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
