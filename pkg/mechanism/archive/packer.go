package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code decides an archive's bytes, with its entries and their time. The cache has a folder for each version of it.
var code = recipe.Of("mechanism/archive", sources)

// An Entry describes a member of an archive: a directory, a symbolic link, or a file whose content is Data or is read from
// Path.
type Entry struct {
	Name string // slash-separated, relative, clean
	// type (fs.ModeDir, fs.ModeSymlink or regular), a file's 0100 and fs.ModeSetuid, a directory's fs.ModeSticky; the rest is ignored
	Mode fs.FileMode
	Link string // a symbolic link's target
	Data []byte // a regular file's content, if Path is empty
	Path string // where a regular file's content is
	Sum  string // SHA-256 of the content of Path in hex, if it is known; saves a read
	Last bool   // comes after those that are not, since it changes more often; must be false for a directory
}

// SHA256 returns the SHA-256 of a regular file's content, in hex.
func (e Entry) SHA256() (string, error) {
	switch {
	case e.Sum != "":
		return e.Sum, nil
	case e.Path != "":
		return checksum.File(e.Path)
	}
	return fmt.Sprintf("%x", sha256.Sum256(e.Data)), nil
}

// A Packer writes .tar.gz files. Its methods may be called concurrently. All packers that share a Cache compress a content
// only once.
type Packer struct {
	Cache   string    // folder for compressed contents; "" keeps them only until TarGz returns
	Workers int       // number of threads that compress; 0 means GOMAXPROCS
	Time    time.Time // time of every member, in whole seconds; the zero time means 1970

	stretch int64 // content between two states of digests, in bytes; 0 means usualStretch
}

// TarGz writes the entries as a .tar.gz. If it fails, what it has written is not a complete archive.
func (p *Packer) TarGz(ctx context.Context, w io.Writer, entries []Entry) error {
	members, err := layout(entries, p.Time)
	if err != nil {
		return err
	}
	return p.gzip(ctx, w, append(members, member{header: zeros[:endSize]}))
}

// A Piece is a part of a stream: Data, then the content of a file, if Path names one.
type Piece struct {
	Data []byte
	Path string
	Sum  string // SHA-256 of the file's content in hex, if it is known; saves a read
}

// Gzip writes pieces as one gzip member, in the way of TarGz: for archives of other forms than tar.
func (p *Packer) Gzip(ctx context.Context, w io.Writer, pieces []Piece) error {
	members := make([]member, len(pieces))
	for i, piece := range pieces {
		members[i] = member{name: piece.Path, header: piece.Data}
		if piece.Path == "" {
			continue
		}
		c, err := newContent(Entry{Name: piece.Path, Path: piece.Path, Sum: piece.Sum})
		if err != nil {
			return fmt.Errorf("pack %s: %w", piece.Path, err)
		}
		members[i].content = c
	}
	return p.gzip(ctx, w, members)
}

func (p *Packer) gzip(ctx context.Context, w io.Writer, members []member) (err error) {
	root := p.Cache
	if root == "" {
		root, err = os.MkdirTemp("", "slipway-archive-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(root)
	}
	cache, err := openCache(root)
	if err != nil {
		return err
	}
	packing := newPacking(cache, p.newWorkers(), members)
	packing.stretch = cmp.Or(p.stretch, usualStretch)
	return packing.run(ctx, w)
}

// Prepare compresses a file's content into the cache before TarGz packs it, while processors would otherwise be idle. TarGz
// compresses what was not prepared. It returns the content's SHA-256 in hex, or "" if it did not compute that.
func (p *Packer) Prepare(ctx context.Context, path string) (sum string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() < minSegment || p.Cache == "" {
		return "", nil // the cache keeps large contents only
	}
	members, err := layout([]Entry{{Name: "content", Path: path}}, time.Time{})
	if err != nil {
		return "", fmt.Errorf("prepare %s: %w", path, err)
	}
	cache, err := openCache(p.Cache)
	if err != nil {
		return "", err
	}
	packing := newPacking(cache, p.newWorkers(), members)
	if err = packing.prepare(ctx); err == nil {
		err = ctx.Err() // prepare does not report it
	}
	if large := packing.large[members[0].content]; large != nil { // else the file is small by now
		sum = large.split.Sum
	}
	return sum, err
}

// A Part is a content in a file, with its SHA-256 in hex.
type Part struct {
	Off, Size int64 // bytes
	Sum       string
}

// Remember keeps in the cache how TarGz cuts the file at path, so that TarGz need not read all of it to find out. Nor does Remember read
// parts that were packed or prepared before. The caller has just written the file, and says its SHA-256 in hex and its CRC-32. Remember
// fails if the parts and what is between them do not have that CRC-32.
func (p *Packer) Remember(ctx context.Context, path, sum string, crc uint32, parts []Part) error {
	if p.Cache == "" {
		return nil
	}
	con, err := newContent(Entry{Name: path, Path: path})
	if err != nil {
		return fmt.Errorf("remember %s: %w", path, err)
	}
	if con.size < minSegment {
		return nil
	}
	cache, err := openCache(p.Cache)
	if err != nil {
		return err
	}
	src, err := con.open()
	if err != nil {
		return err
	}
	defer src.Close()
	s := split{Sum: sum, Size: con.size, Segments: cut(src, con.size)}
	if err := s.scan(ctx, con, src, cache.segments(parts)); err != nil {
		return err
	}
	if *s.CRC != crc {
		return con.fail(fmt.Errorf("%w: CRC-32 is %08x, want %08x", errChanged, *s.CRC, crc))
	}
	return cache.putSplit(s)
}

func (p *Packer) newWorkers() workers {
	return make(workers, cmp.Or(p.Workers, runtime.GOMAXPROCS(0)))
}

// A packing is the state of one TarGz. It works in three stages: prepare cuts the large contents and compresses them into the
// cache, glue compresses what is between them, and write joins both. Prepare, which only fills the disk, runs ahead without
// a limit; glue runs ahead by a few chunks.
type packing struct {
	cache     *cache
	workers   workers
	members   []member
	large     map[*content]*largeContent
	fragments chan fragment
	stretch   int64 // see Packer
}

type largeContent struct {
	*content
	ready chan struct{} // closed when split is known
	split split
}

// A fragment is the next piece of the output: glue, or a segment of a content.
type fragment struct {
	glue    <-chan chunk
	content *content
	segment segment
}

func newPacking(c *cache, w workers, members []member) *packing {
	p := &packing{
		cache:     c,
		workers:   w,
		members:   members,
		large:     make(map[*content]*largeContent),
		fragments: make(chan fragment, 2*cap(w)),
	}
	for _, m := range members {
		if m.content != nil && m.content.size >= minSegment {
			p.large[m.content] = &largeContent{content: m.content, ready: make(chan struct{})}
		}
	}
	return p
}

func (p *packing) run(ctx context.Context, w io.Writer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.prepare(ctx) })
	g.Go(func() error { return p.glue(ctx) })
	g.Go(func() error { return p.write(ctx, w) })
	return g.Wait()
}

// prepare works on a few contents at a time, so that all workers have chunks while one content ends.
func (p *packing) prepare(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(min(cap(p.workers), 4))
	for _, m := range p.members {
		large := p.large[m.content]
		if large == nil {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			var err error
			if large.split, err = p.cache.splitContent(ctx, large.content); err != nil {
				return err
			}
			close(large.ready)
			return p.ensureAll(ctx, large)
		})
	}
	return g.Wait()
}

// ensureAll compresses those segments of a content that the cache lacks, several at a time.
func (p *packing) ensureAll(ctx context.Context, large *largeContent) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(p.workers))
	for _, seg := range large.split.Segments {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return p.cache.ensure(ctx, p.workers, large.content, seg) })
	}
	return g.Wait()
}

// glue sends the fragments, in order, and closes the channel after the last.
func (p *packing) glue(ctx context.Context) error {
	g := &gluer{packing: p, ctx: ctx}
	g.buf = bufio.NewWriterSize(g, chunkSize)
	for i := range p.members {
		if err := g.member(&p.members[i]); err != nil {
			return err
		}
	}
	if err := g.buf.Flush(); err != nil {
		return err
	}
	close(p.fragments)
	return nil
}

// A gluer turns what is written to it, a chunk of glue, into a fragment.
type gluer struct {
	*packing
	ctx context.Context
	buf *bufio.Writer // writes to the gluer when it holds a chunk, or when a segment follows
}

func (g *gluer) Write(p []byte) (int, error) {
	done := make(chan chunk, 1)
	if err := g.send(fragment{glue: done}); err != nil {
		return 0, err
	}
	glue := bytes.Clone(p)
	go func() { done <- g.workers.deflate(g.ctx, glue) }()
	return len(p), nil
}

func (g *gluer) member(m *member) error {
	if _, err := g.buf.Write(m.header); err != nil || m.content == nil {
		return err
	}
	if err := g.content(m.content); err != nil {
		return err
	}
	_, err := g.buf.Write(zeros[:m.padding])
	return err
}

func (g *gluer) content(c *content) error {
	s := split{Sum: c.sum, Size: c.size}
	if large := g.large[c]; large != nil {
		select {
		case <-g.ctx.Done():
			return g.ctx.Err()
		case <-large.ready:
			s = large.split
		}
	}
	src, err := c.open()
	if err != nil {
		return err
	}
	defer src.Close()
	crc, err := s.combine(func(gap segment, next *segment) (uint32, error) {
		if gap.Size == c.size {
			gap.Sum = c.sum // a small file
		}
		h := crc32.NewIEEE()
		if _, err := g.buf.ReadFrom(io.TeeReader(c.reader(g.ctx, src, gap), h)); err != nil || next == nil {
			return h.Sum32(), err
		}
		if err := g.buf.Flush(); err != nil {
			return 0, err
		}
		return h.Sum32(), g.send(fragment{content: c, segment: *next})
	})
	if err == nil && s.CRC != nil && crc != *s.CRC {
		err = c.fail(errChanged)
	}
	return err
}

func (g *gluer) send(f fragment) error {
	select {
	case <-g.ctx.Done():
		return g.ctx.Err()
	case g.fragments <- f:
		return nil
	}
}

var (
	// No name, no time, no hint about the compression, an unknown operating system.
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

	// A final block, stored and empty.
	finalBlock = []byte{1, 0, 0, 0xff, 0xff}
)

// write puts the fragments together as one gzip member.
func (p *packing) write(ctx context.Context, w io.Writer) error {
	o := newOutput(p, w)
	if _, err := w.Write(gzipHeader); err != nil {
		return err
	}
	for more := true; more; {
		var f fragment
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f, more = <-p.fragments:
		}
		if !more {
			break
		}
		piece := piece{fragment: f}
		if f.glue != nil {
			if piece.chunk = <-f.glue; piece.err != nil {
				return piece.err
			}
		}
		if err := o.add(ctx, piece); err != nil {
			return err
		}
	}
	if err := o.writeHeld(ctx, w.Write); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint32(bytes.Clone(finalBlock), o.crc)
	_, err := w.Write(binary.LittleEndian.AppendUint32(end, uint32(o.size)))
	return err
}

// withForm waits for the compressed form of a segment in the cache, and calls use. Another process may remove or damage the form at any
// time; if use fails, the segment is compressed again, a limited number of times.
func (p *packing) withForm(ctx context.Context, c *content, seg segment, use func() error) error {
	var last error
	for range 3 {
		if err := p.cache.ensure(ctx, p.workers, c, seg); err != nil {
			return err
		}
		err := use()
		if errors.Is(err, errDamaged) {
			err = errors.Join(err, p.cache.drop(seg))
		}
		if err == nil {
			return nil
		}
		last = err
	}
	return fmt.Errorf("pack %s: cache: %w", c.name, last)
}
