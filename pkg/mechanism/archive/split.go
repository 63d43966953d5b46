package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

const (
	// minSegment is the least size of a content, or of a part of it, that is a fragment of its own.
	minSegment = 64 << 10

	maxDepth = 4 // of tar files within tar files: a layer in an image archive is the second
)

// A split says how a content is cut into segments, which are in order and do not overlap, with gaps of less than minSegment
// bytes between them. It depends on the content alone. Segments are about a chunk long, so that only a few must be compressed
// again when a binary is linked for another version of the same length.
type split struct {
	Sum      string    `json:"sum"`
	Size     int64     `json:"size"`
	CRC      *uint32   `json:"crc"` // nil if not known
	Segments []segment `json:"segments"`
}

// valid reports whether a split can be used. One from the cache has all sums.
func (s *split) valid() bool {
	if s.CRC == nil {
		return false
	}
	var pos int64
	for _, seg := range s.Segments {
		sum, err := hex.DecodeString(seg.Sum)
		if err != nil || len(sum) != sha256.Size || seg.CRC == nil {
			return false
		}
		gap := seg.Off - pos
		if gap < 0 || gap >= minSegment || seg.Size < minSegment || seg.Size > s.Size-seg.Off {
			return false
		}
		pos = seg.end()
	}
	return s.Size-pos < minSegment
}

// combine calls read for each gap with the segment that follows it, or nil after the last. It returns the CRC-32 of the whole
// content, combined from the results of read and the CRCs of the segments. It is meaningless if a segment has none.
func (s *split) combine(read func(gap segment, next *segment) (uint32, error)) (uint32, error) {
	var pos int64
	var crc uint32
	for i := range s.Segments {
		next := &s.Segments[i]
		gap := segment{Off: pos, Size: next.Off - pos}
		c, err := read(gap, next)
		if err != nil {
			return 0, err
		}
		crc = combineCRC(crc, c, gap.Size)
		if next.CRC != nil {
			crc = combineCRC(crc, *next.CRC, next.Size)
		}
		pos = next.end()
	}
	gap := segment{Off: pos, Size: s.Size - pos}
	c, err := read(gap, nil)
	return combineCRC(crc, c, gap.Size), err
}

// splitContent returns how a content is cut. It reads the content at most once, and not at all if the sum is known and the
// cache has its split.
func (c *cache) splitContent(ctx context.Context, con *content) (split, error) {
	src, err := con.open()
	if err != nil {
		return split{}, err
	}
	defer src.Close()
	if con.sum != "" {
		s, ok := c.split(con.sum, con.size)
		if ok && s.fits(ctx, con, src) {
			return s, nil
		}
	}
	s := split{Size: con.size, Segments: cut(src, con.size)}
	if err := s.scan(ctx, con, src, nil); err != nil {
		return split{}, err
	}
	if con.sum != "" && con.sum != s.Sum {
		return split{}, con.fail(fmt.Errorf("%w: SHA-256 is %s, want %s", errChanged, s.Sum, con.sum))
	}
	return s, c.putSplit(s)
}

// fits reports whether a split from the cache matches the content. It reads the gaps only: together with the segments they
// must make up the whole.
func (s *split) fits(ctx context.Context, con *content, src contentReader) bool {
	crc, err := s.combine(func(gap segment, _ *segment) (uint32, error) {
		h := crc32.NewIEEE()
		_, err := io.Copy(h, con.reader(ctx, src, gap))
		return h.Sum32(), err
	})
	return err == nil && crc == *s.CRC
}

// scan reads the content and fills in the sums of the split and its segments. It does not read
// segments that are known, by where they are; the split must have its sum already if there are any.
func (s *split) scan(ctx context.Context, con *content, src contentReader, known map[extent]segment) error {
	var whole hash.Hash
	if s.Sum == "" {
		whole = sha256.New()
	}
	buf := make([]byte, 256<<10)
	read := func(part segment, sha hash.Hash) (uint32, error) {
		crc := crc32.NewIEEE()
		to := []io.Writer{crc}
		for _, h := range []hash.Hash{whole, sha} {
			if h != nil {
				to = append(to, h)
			}
		}
		_, err := io.CopyBuffer(io.MultiWriter(to...), con.reader(ctx, src, part), buf)
		return crc.Sum32(), err
	}
	crc, err := s.combine(func(gap segment, next *segment) (uint32, error) {
		gapCRC, err := read(gap, nil)
		if err != nil || next == nil {
			return gapCRC, err
		}
		if k, ok := known[extent{next.Off, next.Size}]; ok {
			next.Sum, next.CRC = k.Sum, k.CRC
			return gapCRC, nil
		}
		sha := sha256.New()
		crc, err := read(segment{Off: next.Off, Size: next.Size}, sha)
		next.Sum, next.CRC = hex.EncodeToString(sha.Sum(nil)), &crc
		return gapCRC, err
	})
	if err != nil {
		return err
	}
	s.CRC = &crc
	if whole != nil {
		s.Sum = hex.EncodeToString(whole.Sum(nil))
	}
	return nil
}

// An extent is where a segment lies in a content.
type extent struct{ off, size int64 }

// segments returns the segments of those parts whose splits the cache has, by where they are in the whole.
func (c *cache) segments(parts []Part) map[extent]segment {
	known := map[extent]segment{}
	for _, part := range parts {
		s, ok := c.split(part.Sum, part.Size)
		if !ok {
			continue
		}
		for _, seg := range s.Segments {
			known[extent{part.Off + seg.Off, seg.Size}] = seg
		}
	}
	return known
}

// isTar reports whether the content has a tar file's magic number.
func isTar(r io.ReaderAt, off, size int64) bool {
	var p [5]byte
	if size < blockSize {
		return false
	}
	n, _ := r.ReadAt(p[:], off+257)
	return string(p[:n]) == "ustar"
}

// cut returns the segments of a content, each about a chunk long. It cuts a tar file at its large members, these at their
// members if they are tar files, and large gaps between them; it cuts any other content everywhere.
//
// A file that only looks like a tar file may be cut anywhere, which is no error: any cut gives the same content.
func cut(r io.ReaderAt, size int64) []segment {
	var segs []segment
	var pos int64
	for _, m := range largeMembers(r, 0, size, 0) {
		if m.Off-pos >= minSegment {
			segs = appendChunks(segs, segment{Off: pos, Size: m.Off - pos})
		}
		segs = appendChunks(segs, m)
		pos = m.end()
	}
	if size-pos >= minSegment {
		segs = appendChunks(segs, segment{Off: pos, Size: size - pos})
	}
	return segs
}

// appendChunks appends a segment in pieces of a chunk each. A short rest stays with the piece before.
func appendChunks(segs []segment, s segment) []segment {
	for s.Size >= chunkSize+minSegment {
		segs = append(segs, segment{Off: s.Off, Size: chunkSize})
		s.Off += chunkSize
		s.Size -= chunkSize
	}
	return append(segs, s)
}

// largeMembers returns the members of a tar file that are fragments, or none if the tar file has any flaw.
func largeMembers(r io.ReaderAt, off, size int64, depth int) []segment {
	if depth == maxDepth || !isTar(r, off, size) {
		return nil
	}
	var segs []segment
	section := io.NewSectionReader(r, off, size)
	tr := tar.NewReader(section) // does not read ahead: behind a header is the content
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return segs
		}
		if err != nil {
			return nil
		}
		if h.Typeflag != tar.TypeReg || h.Size < minSegment {
			continue
		}
		pos, err := section.Seek(0, io.SeekCurrent)
		if err != nil || h.Size > size-pos {
			return nil // or a sparse file, which is shorter than it says
		}
		m := segment{Off: off + pos, Size: h.Size}
		if n := len(segs); n > 0 && m.Off < segs[n-1].end() {
			return nil
		}
		if inner := largeMembers(r, m.Off, m.Size, depth+1); len(inner) > 0 {
			segs = append(segs, inner...)
			continue
		}
		segs = append(segs, m)
	}
}
