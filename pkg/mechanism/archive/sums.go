package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// A Digester is a writer that digests what it writes. If TarGz writes to one, the cache keeps the states of its digests, so that what an
// archive has in common with an earlier one, from its start, is not digested again. Package checksum has one.
type Digester interface {
	io.Writer
	Pass(p []byte) (int, error) // writes without digesting
	State() ([]byte, error)     // of the digests of what was written until now
	Resume(state []byte) error  // continues as if what led to the state had been written; if it fails, nothing has changed
}

// usualStretch is how much content is between two states in the cache, in bytes.
const usualStretch = 32 << 20

// A piece is a fragment whose glue is compressed, and whose segment is in the cache.
type piece struct {
	fragment
	chunk         // of glue
	form  trailer // of the segment, if its bytes decide a name
}

// An output writes pieces. It has a name for all pieces until now, which decides their bytes: under that name, the cache keeps the state of
// the digests at the end of a stretch.
type output struct {
	*packing
	to   io.Writer
	sums Digester  // to, or nil if that is no Digester
	name hash.Hash // of the pieces until now
	buf  []byte    // for a compressed form; about a chunk long

	known bool    // the states at the end of all stretches until now were in the cache
	held  []piece // of a stretch that may be known, too
	since int64   // content since the last stretch, bytes

	crc  uint32 // of the content that was written
	size int64  // of the same, bytes
}

func newOutput(p *packing, to io.Writer) *output {
	o := &output{packing: p, to: to, name: sha256.New()}
	if d, ok := to.(Digester); ok {
		o.sums, o.known = d, true
	}
	return o
}

// add writes a piece, or holds it until it turns out whether its stretch is known.
func (o *output) add(ctx context.Context, p piece) error {
	if o.sums == nil {
		return o.writePiece(ctx, p, o.to.Write)
	}
	if p.glue == nil {
		var err error
		if p.form, err = o.form(ctx, p.content, p.segment); err != nil {
			return err
		}
		fmt.Fprintf(o.name, "segment %s %d %d %d\n", p.segment.Sum, p.segment.Size, p.form.PackedSize, p.form.PackedCRC) // a hash never fails
		o.since += p.segment.Size
	} else {
		fmt.Fprintf(o.name, "glue %d\n", len(p.packed))
		o.name.Write(p.packed)
		o.since += p.chunk.size
	}
	if o.known {
		o.held = append(o.held, p)
	} else if err := o.writePiece(ctx, p, o.to.Write); err != nil {
		return err
	}
	if o.since < o.stretch {
		return nil
	}
	o.since = 0
	name := hex.EncodeToString(o.name.Sum(nil))
	if o.known {
		if state, ok := o.cache.intact(name, sumsExt); ok && o.sums.Resume(state) == nil {
			return o.writeHeld(ctx, o.sums.Pass)
		}
		o.known = false
		if err := o.writeHeld(ctx, o.to.Write); err != nil {
			return err
		}
	}
	state, err := o.sums.State()
	if err != nil {
		return err
	}
	return o.cache.keep(name, sumsExt, state)
}

// form returns what the cache says of the compressed form of a segment.
func (o *output) form(ctx context.Context, c *content, seg segment) (t trailer, err error) {
	err = o.withForm(ctx, c, seg, func() error {
		f, found, err := o.cache.stat(seg)
		if err != nil {
			return err
		}
		t = found
		return f.Close()
	})
	return t, err
}

// writeHeld writes the pieces that were held.
func (o *output) writeHeld(ctx context.Context, write func([]byte) (int, error)) error {
	for _, p := range o.held {
		if err := o.writePiece(ctx, p, write); err != nil {
			return err
		}
	}
	o.held = nil
	return nil
}

// writePiece writes a piece by one of the writer's methods.
func (o *output) writePiece(ctx context.Context, p piece, write func([]byte) (int, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := p.chunk
	if p.glue == nil {
		err := o.withForm(ctx, p.content, p.segment, func() error {
			var t trailer
			var err error
			if o.buf, t, err = o.cache.read(p.segment, o.buf); err != nil {
				return err
			}
			if p.form.PackedSize > 0 && t != p.form {
				return fmt.Errorf("%s: %w", o.cache.path(p.segment.Sum, packedExt), errChanged) // it was compressed again, by other code
			}
			c = chunk{packed: o.buf, size: t.Size, crc: t.CRC}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if _, err := write(c.packed); err != nil {
		return err
	}
	o.crc = combineCRC(o.crc, c.crc, c.size)
	o.size += c.size
	return nil
}
