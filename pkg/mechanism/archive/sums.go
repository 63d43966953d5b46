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

// stretch is how much content is between two states in the cache, in bytes.
const stretch = 32 << 20

// A piece is a fragment whose glue is compressed.
type piece struct {
	fragment
	chunk
}

// length returns how much content a piece has, in bytes.
func (p *piece) length() int64 {
	if p.glue == nil {
		return p.segment.Size
	}
	return p.chunk.size
}

// An output writes pieces. It has a name for all pieces until now, which decides their bytes: under that name, the cache keeps the state of the
// digests at the end of a stretch.
type output struct {
	*packing
	to   io.Writer
	sums Digester  // that is to, or nil
	name hash.Hash // of the pieces until now

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
		return o.write(ctx, p, o.to.Write)
	}
	if p.glue == nil {
		fmt.Fprintf(o.name, "segment %s %d\n", p.segment.Sum, p.segment.Size) // a hash never fails
	} else {
		fmt.Fprintf(o.name, "glue %d\n", len(p.packed))
		o.name.Write(p.packed)
	}
	o.since += p.length()
	if o.known {
		o.held = append(o.held, p)
	} else if err := o.write(ctx, p, o.to.Write); err != nil {
		return err
	}
	if o.since < stretch {
		return nil
	}
	o.since = 0
	name := hex.EncodeToString(o.name.Sum(nil))
	if o.known {
		if state, ok := o.cache.intact(name, sumsExt); ok && o.sums.Resume(state) == nil {
			return o.release(ctx, o.sums.Pass)
		}
		o.known = false
		if err := o.release(ctx, o.to.Write); err != nil {
			return err
		}
	}
	state, err := o.sums.State()
	if err != nil {
		return err
	}
	return o.cache.keep(name, sumsExt, state)
}

// release writes the pieces that were held.
func (o *output) release(ctx context.Context, write func([]byte) (int, error)) error {
	for _, p := range o.held {
		if err := o.write(ctx, p, write); err != nil {
			return err
		}
	}
	o.held = nil
	return nil
}

// write writes a piece by one of the writer's methods.
func (o *output) write(ctx context.Context, p piece, write func([]byte) (int, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := p.chunk, error(nil)
	if p.glue == nil {
		c, err = o.segment(ctx, p.content, p.fragment.segment)
	}
	if err != nil {
		return err
	}
	if _, err := write(c.packed); err != nil {
		return err
	}
	o.crc = combineCRC(o.crc, c.crc, c.size)
	o.size += c.size
	return nil
}
