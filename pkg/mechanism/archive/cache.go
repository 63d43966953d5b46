package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"slipway.build/pkg/mechanism/atomicfile"
)

const (
	keepUnused = 5 * 24 * time.Hour // after this time without use, Trim removes a file
	touchEvery = time.Hour          // a use is recorded if the last one is older

	packedExt = ".deflate" // compressed forms, named by the SHA-256 of the content
	splitExt  = ".split"   // lists of segments, named by the SHA-256 of the tar file
	sumsExt   = ".sums"    // states of digests, named by a SHA-256 of the pieces that were digested, see output
	tempExt   = ".tmp"     // files that are not complete
)

// errDamaged says that a file in the cache differs from what was written.
var errDamaged = errors.New("damaged")

// A cache is a folder of compressed forms and lists of segments of one recipe. Each file in it is complete and never
// changes, but may disappear at any time.
type cache struct {
	dir string
}

func openCache(root string) (*cache, error) {
	c := &cache{dir: filepath.Join(root, folder())}
	return c, os.MkdirAll(c.dir, 0o777)
}

func (c *cache) path(sum, ext string) string {
	return filepath.Join(c.dir, sum+ext)
}

// A trailer ends a compressed form.
type trailer struct {
	Magic      [8]byte
	Sum        [sha256.Size]byte // of the content
	Size       int64             // of the content
	CRC        uint32            // of the content
	PackedCRC  uint32
	PackedSize int64
	TrailerCRC uint32 // of the fields above
}

var (
	magic       = [8]byte([]byte("slipflat"))
	trailerSize = binary.Size(trailer{})
)

func (t trailer) bytes() []byte {
	p, err := binary.Append(nil, binary.LittleEndian, t)
	if err != nil {
		panic(err) // all fields have a fixed size
	}
	return p
}

func (t trailer) sum() uint32 {
	t.TrailerCRC = 0
	return crc32.ChecksumIEEE(t.bytes())
}

// stat returns the opened compressed form of a segment whose sum is known, and its trailer. The compressed
// form itself is not checked.
func (c *cache) stat(seg segment) (*os.File, trailer, error) {
	var t trailer
	f, err := os.Open(c.path(seg.Sum, packedExt))
	if err != nil {
		return nil, t, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, t, err
	}
	at := info.Size() - int64(trailerSize)
	err = binary.Read(io.NewSectionReader(f, at, int64(trailerSize)), binary.LittleEndian, &t)
	intact := err == nil && t.Magic == magic && t.TrailerCRC == t.sum() && t.PackedSize == at &&
		t.Size == seg.Size && hex.EncodeToString(t.Sum[:]) == seg.Sum && (seg.CRC == nil || *seg.CRC == t.CRC)
	if !intact {
		f.Close()
		return nil, t, fmt.Errorf("%s: %w", f.Name(), errDamaged)
	}
	touch(f.Name(), info)
	return f, t, nil
}

// read returns the compressed form of a segment, in a buffer that may be the given one, and its trailer. It checks every byte.
func (c *cache) read(seg segment, buf []byte) ([]byte, trailer, error) {
	f, t, err := c.stat(seg)
	if err != nil {
		return buf, t, err
	}
	defer f.Close()
	buf = slices.Grow(buf[:0], int(t.PackedSize))[:t.PackedSize]
	if _, err := f.ReadAt(buf, 0); err != nil || crc32.ChecksumIEEE(buf) != t.PackedCRC {
		return buf, t, fmt.Errorf("%s: %w", f.Name(), errDamaged)
	}
	return buf, t, nil
}

// has reports whether the compressed form of a segment seems to be there.
func (c *cache) has(seg segment) bool {
	f, _, err := c.stat(seg)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// compressing has the compressed forms that this process is writing, by path. It is global so that several packers with one cache also
// compress a content only once. Compression never waits for another form, so waiting cannot deadlock.
var compressing singleflight.Group

// ensure compresses a segment into the cache if it's missing.
func (c *cache) ensure(ctx context.Context, w workers, con *content, seg segment) error {
	for !c.has(seg) {
		mine := false
		_, err, _ := compressing.Do(c.path(seg.Sum, packedExt), func() (any, error) {
			mine = true
			if c.has(seg) {
				return nil, nil // compressed between the check and the call
			}
			return nil, c.make(ctx, w, con, seg)
		})
		if mine {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		// The other packer may have failed, perhaps for a reason of its own: check again.
	}
	return nil
}

// make compresses a segment into the cache.
func (c *cache) make(ctx context.Context, w workers, con *content, seg segment) error {
	src, err := con.open()
	if err != nil {
		return err
	}
	defer src.Close()
	t := trailer{Magic: magic, Size: seg.Size}
	if _, err := hex.Decode(t.Sum[:], []byte(seg.Sum)); err != nil {
		return con.fail(err)
	}
	return atomicfile.Write(c.path(seg.Sum, packedExt), 0o644, func(f io.Writer) error { // users may share the cache
		err := w.deflateAll(ctx, con.reader(ctx, src, seg), func(ch chunk) error {
			t.CRC = combineCRC(t.CRC, ch.crc, ch.size)
			t.PackedCRC = crc32.Update(t.PackedCRC, crc32.IEEETable, ch.packed)
			t.PackedSize += int64(len(ch.packed))
			_, err := f.Write(ch.packed)
			return err
		})
		if err != nil {
			return err
		}
		t.TrailerCRC = t.sum()
		_, err = f.Write(t.bytes())
		return err
	})
}

// drop removes a compressed form that turned out to be damaged.
func (c *cache) drop(seg segment) error {
	err := os.Remove(c.path(seg.Sum, packedExt))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// split returns what putSplit kept for the tar file with the given sum and size.
func (c *cache) split(sum string, size int64) (split, bool) {
	list, ok := c.intact(sum, splitExt)
	var s split
	if !ok || json.Unmarshal(list, &s) != nil || s.Sum != sum || s.Size != size || !s.valid() {
		return split{}, false
	}
	return s, true
}

func (c *cache) putSplit(s split) error {
	list, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.keep(s.Sum, splitExt, list)
}

// intact returns what keep kept, if every byte is as it was.
func (c *cache) intact(name, ext string) ([]byte, bool) {
	path := c.path(name, ext)
	p, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	check, data, _ := bytes.Cut(p, []byte("\n"))
	if string(check) != fmt.Sprintf("%x", sha256.Sum256(data)) {
		return nil, false
	}
	if info, err := os.Stat(path); err == nil {
		touch(path, info)
	}
	return data, true
}

// keep writes a small file that begins with the digest of the rest.
func (c *cache) keep(name, ext string, data []byte) error {
	return atomicfile.Write(c.path(name, ext), 0o644, func(f io.Writer) error {
		_, err := fmt.Fprintf(f, "%x\n%s", sha256.Sum256(data), data)
		return err
	})
}

// touch records a use. It may fail in another user's cache; then the file only looks unused.
func touch(path string, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > touchEvery {
		os.Chtimes(path, now, now)
	}
}

// Trim removes files from the cache that were not used for five days, of whichever recipe. It may run while the
// cache is in use.
func (p *Packer) Trim() error {
	if p.Cache == "" {
		return nil
	}
	// The user may have chosen a folder that holds other things, too.
	names, err := fs.Glob(os.DirFS(p.Cache), strings.Repeat("[0-9a-f]", 16)+"/*")
	if err != nil {
		return err
	}
	old := time.Now().Add(-keepUnused)
	var errs []error
	for _, name := range names {
		file := filepath.Join(p.Cache, filepath.FromSlash(name))
		info, err := os.Lstat(file)
		if err != nil || !isCached(info) || !info.ModTime().Before(old) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if dir := filepath.Dir(file); filepath.Base(dir) != folder() {
			os.Remove(dir) // if it is empty
		}
	}
	return errors.Join(errs...)
}

// folder returns the name of the folder of what this code makes.
func folder() string { return code.Digest()[:16] }

// isCached recognizes the files of a cache.
func isCached(f fs.FileInfo) bool {
	sum, _, found := strings.Cut(strings.TrimPrefix(f.Name(), "."), ".") // a temporary file begins with a dot
	_, err := hex.DecodeString(sum)
	extensions := []string{packedExt, splitExt, sumsExt, tempExt}
	return f.Mode().IsRegular() && found && err == nil && len(sum) == 2*sha256.Size && slices.Contains(extensions, filepath.Ext(f.Name()))
}
