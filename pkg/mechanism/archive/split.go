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
	// minSegment is the size from which on a content, or part of it, is a fragment of its own.
	minSegment = 64 << 10

	maxDepth = 4 // of tar files within tar files: a layer in an image archive is the second
)

// A split says how a content is cut into fragments: at its segments, which are in order and do not overlap.
// Between them are gaps of less than minSegment bytes. How a content is cut depends on nothing but itself.
// Segments are about a chunk long, so that of a binary that was linked anew for another version only those
// are compressed again that differ: a few, as the version's length is the same.
type split struct {
	Sum      string    `json:"sum"`
	Size     int64     `json:"size"`
	CRC      *uint32   `json:"crc"` // nil if not known
	Segments []segment `json:"segments"`
}

// valid reports whether a split can be used. One that was kept knows all sums.
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

// combine calls read for each gap, and with the segment that follows it (nil after the last). It returns the
// CRC-32 of the whole content, which is what read returned for the gaps and what the segments say; if these
// do not, it is meaningless.
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

// splitContent finds out how a content is cut. It reads the content at most once, and not at all when the
// sum is known and the cache tells the rest.
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
	if err := s.scan(ctx, con, src); err != nil {
		return split{}, err
	}
	if con.sum != "" && con.sum != s.Sum {
		return split{}, con.fail(fmt.Errorf("%w: SHA-256 is %s, want %s", errChanged, s.Sum, con.sum))
	}
	return s, c.putSplit(s)
}

// fits reports whether a split from the cache is that of the content, as far as can be told by reading the
// gaps only: these and the segments have to make up the whole.
func (s *split) fits(ctx context.Context, con *content, src contentReader) bool {
	crc, err := s.combine(func(gap segment, _ *segment) (uint32, error) {
		h := crc32.NewIEEE()
		_, err := io.Copy(h, con.reader(ctx, src, gap))
		return h.Sum32(), err
	})
	return err == nil && crc == *s.CRC
}

// scan reads the content and fills in the sums of the split and its segments.
func (s *split) scan(ctx context.Context, con *content, src contentReader) error {
	whole := sha256.New()
	buf := make([]byte, 256<<10)
	read := func(part segment, sha hash.Hash) (uint32, error) {
		crc := crc32.NewIEEE()
		w := io.MultiWriter(whole, crc)
		if sha != nil {
			w = io.MultiWriter(whole, crc, sha)
		}
		_, err := io.CopyBuffer(w, con.reader(ctx, src, part), buf)
		return crc.Sum32(), err
	}
	crc, err := s.combine(func(gap segment, next *segment) (uint32, error) {
		gapCRC, err := read(gap, nil)
		if err != nil || next == nil {
			return gapCRC, err
		}
		var sha hash.Hash
		if next.Size < s.Size {
			sha = sha256.New()
		}
		crc, err := read(segment{Off: next.Off, Size: next.Size}, sha)
		next.CRC = &crc
		if sha != nil {
			next.Sum = hex.EncodeToString(sha.Sum(nil))
		}
		return gapCRC, err
	})
	if err != nil {
		return err
	}
	s.CRC = &crc
	s.Sum = hex.EncodeToString(whole.Sum(nil))
	for i := range s.Segments {
		if s.Segments[i].Sum == "" { // it is all there is
			s.Segments[i].Sum = s.Sum
		}
	}
	return nil
}

// isTar reports whether there is a tar file's magic number where it has to be.
func isTar(r io.ReaderAt, off, size int64) bool {
	var p [5]byte
	if size < blockSize {
		return false
	}
	n, _ := r.ReadAt(p[:], off+257)
	return string(p[:n]) == "ustar"
}

// cut returns the segments of a content, each of about a chunk: of the large members of a tar file, of members of these
// if they are tar files, and of the large gaps between; or else of all of it.
//
// A wrong cut, in a file that only looks like a tar, would be no error: any cut gives the same content.
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

// largeMembers returns the members of a tar file that are fragments, none if it is not a flawless one.
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
