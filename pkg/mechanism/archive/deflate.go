package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

const (
	// chunkSize is how much is compressed at once, without knowledge of what is before it. Larger chunks compress Go binaries
	// better by at most a thousandth, as does a dictionary of the 32 KiB before. Smaller ones are easier to share among cores.
	chunkSize = 1 << 20

	// level of the compressor. Measured with kube-apiserver and kubelet (149 MB; one core of a Xeon;
	// gzip -6 makes 45.9 MB at 15.5 MB/s):
	//
	//	level  size against gzip -6  speed against gzip -6
	//	4      1.09                  4.6
	//	5      1.06                  4.2
	//	6      1.047                 4.0
	//	7      1.03                  2.6
	//	9      1.01                  0.5
	level = 6

	maxStored = 1<<16 - 1 // bytes in a stored block
)

// A chunk is a compressed piece of the output. Packed is a sequence of whole deflate blocks that ends at a
// byte boundary and refers to nothing before it; none of them is the final one.
type chunk struct {
	packed []byte
	size   int64  // of the content
	crc    uint32 // of the content
	err    error
}

// Compressors and read buffers are reused: each is as large as a chunk, and a release has hundreds of chunks. A test checks
// that a reset compressor makes the same bytes as a new one.
var (
	compressors = sync.Pool{New: func() any {
		w, err := flate.NewWriter(io.Discard, level)
		if err != nil {
			panic(err) // the level is constant
		}
		return w
	}}
	buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}
)

// deflate compresses up to chunkSize bytes.
func deflate(p []byte) chunk {
	b := bytes.NewBuffer(make([]byte, 0, len(p)/2+64))
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(b)
	_, err := w.Write(p)
	if err == nil {
		err = w.Flush() // ends at a byte boundary
	}
	packed := b.Bytes()
	if len(packed) >= storedSize(len(p)) {
		packed = store(p)
	}
	return chunk{packed: packed, size: int64(len(p)), crc: crc32.ChecksumIEEE(p), err: err}
}

func storedSize(n int) int {
	return n + (n+maxStored-1)/maxStored*5
}

// store puts incompressible content into stored blocks.
func store(p []byte) []byte {
	out := make([]byte, 0, storedSize(len(p)))
	for len(p) > 0 {
		n := min(len(p), maxStored)
		out = append(out, 0)
		out = binary.LittleEndian.AppendUint16(out, uint16(n))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(n))
		out = append(out, p[:n]...)
		p = p[n:]
	}
	return out
}

// workers limit how many chunks are compressed at once: the channel has an element for each.
type workers chan struct{}

// deflate compresses up to chunkSize bytes when a worker is free.
func (w workers) deflate(ctx context.Context, p []byte) chunk {
	select {
	case <-ctx.Done():
		return chunk{err: ctx.Err()}
	case w <- struct{}{}:
	}
	defer func() { <-w }()
	return deflate(p)
}

// deflateAll compresses everything in r and passes it to emit, chunk by chunk.
func (w workers) deflateAll(ctx context.Context, r io.Reader, emit func(chunk) error) error {
	buf := buffers.Get().(*[chunkSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := io.ReadFull(r, buf[:])
		last := err == io.ErrUnexpectedEOF // a shorter chunk
		if err == io.EOF {
			return nil
		}
		if err != nil && !last {
			return err
		}
		c := w.deflate(ctx, buf[:n])
		if c.err != nil {
			return c.err
		}
		if err := emit(c); err != nil || last {
			return err
		}
	}
}

// combineCRC returns the CRC-32 of a content whose first part has the CRC-32 a and whose rest, of n bytes,
// has b.
//
// A CRC is a remainder modulo a polynomial P over GF(2). Appending n bytes multiplies what was before by x^8n and adds what is
// new, where addition is xor. The inversions of the CRCs at both ends cancel out.
func combineCRC(a, b uint32, n int64) uint32 {
	shift := uint32(1) << 31  // x^0
	square := uint32(1) << 23 // x^8, then its square, and so on
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, square)
		}
		square = multiply(square, square)
	}
	return multiply(shift, a) ^ b
}

// multiply multiplies modulo P. As in CRC-32 the highest bit is the coefficient of x^0.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1 // times x
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
