package attest

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
)

// A Digest is what identifies a file's content.
type Digest struct {
	SHA256 string // in hex
	SHA512 string // in hex
}

// Sums are the digests of files by their slash-separated names.
type Sums map[string]Digest

// A Digester computes the digest of what is written to it, so that a file need not be read again for its sums. The sums
// run beside the writer and beside each other, each in a goroutine of its own, which Digest ends.
type Digester struct {
	to             io.Writer
	short, long    *io.PipeWriter
	sha256, sha512 chan string
}

// NewDigester starts one.
func NewDigester() *Digester {
	d := &Digester{}
	d.short, d.sha256 = summing(sha256.New())
	d.long, d.sha512 = summing(sha512.New())
	d.to = io.MultiWriter(d.short, d.long)
	return d
}

func (d *Digester) Write(p []byte) (int, error) { return d.to.Write(p) }

// Digest is that of all that was written. It has to be called once, at the end, even if nobody needs it.
func (d *Digester) Digest() Digest {
	_ = d.short.Close() // a pipe's end never fails
	_ = d.long.Close()
	return Digest{<-d.sha256, <-d.sha512}
}

func summing(h hash.Hash) (*io.PipeWriter, chan string) {
	r, w := io.Pipe()
	sum := make(chan string, 1)
	go func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{h}, r, make([]byte, 1<<20)) // neither side fails
		sum <- hex.EncodeToString(h.Sum(nil))
	}()
	return w, sum
}
