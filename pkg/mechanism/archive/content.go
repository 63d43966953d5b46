package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// errChanged says that a file differs from what the caller said, or from what it was before.
var errChanged = errors.New("changed while being packed")

// A content is the content of a regular file: data, or the file at path.
type content struct {
	name    string // of the member, for errors
	path    string
	data    []byte
	size    int64
	modTime time.Time
	sum     string  // SHA-256 in hex, "" if not known
	crc     *uint32 // CRC-32, nil if not known
}

// A contentReader is an opened content.
type contentReader interface {
	io.ReaderAt
	io.Closer
}

func (c *content) open() (contentReader, error) {
	if c.path == "" {
		return struct {
			io.ReaderAt
			io.Closer
		}{bytes.NewReader(c.data), io.NopCloser(nil)}, nil
	}
	f, err := os.Open(c.path)
	if err != nil {
		return nil, c.fail(err)
	}
	if err := c.checkStat(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkStat compares the file with what layout saw. A file with a known sum may be touched or replaced by an equal one; for
// any other file the time must be the same, since nothing else identifies its content.
func (c *content) checkStat(r contentReader) error {
	f, ok := r.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return c.fail(err)
	}
	if info.Size() != c.size || c.sum == "" && !info.ModTime().Equal(c.modTime) {
		return c.fail(errChanged)
	}
	return nil
}

// fail adds the content's name to an error that may lack it.
func (c *content) fail(err error) error {
	if c.path == "" || errors.As(err, new(*os.PathError)) {
		return fmt.Errorf("pack %s: %w", c.name, err)
	}
	return fmt.Errorf("pack %s: %s: %w", c.name, c.path, err)
}

// whole returns the content as one segment.
func (c *content) whole() segment {
	return segment{Size: c.size, Sum: c.sum, CRC: c.crc}
}

// A segment is a part of a content.
type segment struct {
	Off  int64   `json:"off"`
	Size int64   `json:"size"`
	Sum  string  `json:"sum"` // SHA-256 in hex, "" if not known
	CRC  *uint32 `json:"crc"` // CRC-32, nil if not known
}

func (s segment) end() int64 { return s.Off + s.Size }

// A segmentReader reads a segment from its content. At its end it fails if the data differs from what the segment says. If
// both sums are known it checks the cheaper one, since one scan computed both.
type segmentReader struct {
	ctx  context.Context
	c    *content
	seg  segment
	src  contentReader
	pos  int64
	sha  hash.Hash // nil unless the SHA-256 is checked
	crc  uint32
	last error // sticky
}

func (c *content) reader(ctx context.Context, src contentReader, seg segment) *segmentReader {
	r := &segmentReader{ctx: ctx, c: c, seg: seg, src: src}
	if seg.Sum != "" && seg.CRC == nil {
		r.sha = sha256.New()
	}
	return r
}

func (r *segmentReader) Read(p []byte) (int, error) {
	if r.last != nil {
		return 0, r.last
	}
	if r.pos == r.seg.Size {
		r.last = r.check()
		return 0, r.last
	}
	if r.last = r.ctx.Err(); r.last != nil {
		return 0, r.last
	}
	p = p[:min(int64(len(p)), r.seg.Size-r.pos)]
	n, err := r.src.ReadAt(p, r.seg.Off+r.pos)
	r.pos += int64(n)
	if r.sha != nil {
		r.sha.Write(p[:n])
	} else if r.seg.CRC != nil {
		r.crc = crc32.Update(r.crc, crc32.IEEETable, p[:n])
	}
	if n < len(p) {
		if err == io.EOF {
			err = errChanged // it was cut
		}
		r.last = r.c.fail(err)
	}
	return n, r.last
}

// check returns io.EOF if the data that was read matches the segment.
func (r *segmentReader) check() error {
	if err := r.c.checkStat(r.src); err != nil {
		return err
	}
	if r.sha != nil {
		if sum := hex.EncodeToString(r.sha.Sum(nil)); sum != r.seg.Sum {
			return r.c.fail(fmt.Errorf("%w: SHA-256 is %s, want %s", errChanged, sum, r.seg.Sum))
		}
	} else if r.seg.CRC != nil && r.crc != *r.seg.CRC {
		return r.c.fail(errChanged)
	}
	return io.EOF
}
