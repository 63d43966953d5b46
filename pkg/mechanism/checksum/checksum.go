// Package checksum computes digests of files, and writes checksum files, SHA256SUMS and SHA512SUMS, in the form of sha256sum and
// sha512sum, which users check them with: `sha256sum -c SHA256SUMS`.
//
// What must never be in here: which files a release has, where they come from, and how they are made.
package checksum

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

var code = recipe.Of("mechanism/checksum", sources)

// A Digest identifies a file's content.
type Digest struct {
	SHA256 string // in hex
	SHA512 string // in hex
}

// Sums are the digests of files by their slash-separated names.
type Sums map[string]Digest

// A Digester passes on what is written to it and computes its digest, so a file need not be read again for its sums. The
// underlying writer and the sums work in goroutines of their own, which Digest ends.
type Digester struct {
	sha256, sha512 hash.Hash
	block          *block      // is being filled
	passes         bool        // what the block has must not be digested
	free           chan *block // blocks that nobody reads
	readers        []chan *block
	done           sync.WaitGroup
	failed         atomic.Pointer[error]
}

const (
	// blockSize, in bytes, is small enough to stay in the processor's cache until all have read it, and large enough for a write: 1 GiB took
	// 0.80 s in pieces of 8 KiB, 0.43 s in pieces of 64, and 0.37 s in pieces of 1,024 (dd, three times each). Linux makes one folio of what
	// is written at once. Larger ones were slower on another virtual machine, which had given its free memory back: 400 MB in pieces of 256
	// KiB took twice the time of 8.
	blockSize = 64 << 10
	blocks    = 16 // how far a writer may be ahead of the slowest reader
)

// A block is a piece of the data, until all readers are done with it.
type block struct {
	data    []byte
	passed  bool // must not be digested
	readers atomic.Int32
}

// NewDigester returns a Digester that passes data on to a writer. The caller must call Digest, which ends its goroutines.
func NewDigester(to io.Writer) *Digester {
	d := &Digester{sha256: sha256.New(), sha512: sha512.New(), free: make(chan *block, blocks)}
	for range blocks {
		d.free <- &block{}
	}
	for i, w := range []io.Writer{to, d.sha512, d.sha256} {
		in := make(chan *block, blocks)
		d.readers = append(d.readers, in)
		d.done.Go(func() { d.read(in, w, i > 0) })
	}
	return d
}

func (d *Digester) read(in <-chan *block, w io.Writer, digests bool) {
	for b := range in {
		if d.err() == nil && !(digests && b.passed) {
			if _, err := w.Write(b.data); err != nil {
				d.failed.CompareAndSwap(nil, &err)
			}
		}
		if b.readers.Add(-1) == 0 {
			d.free <- b
		}
	}
}

func (d *Digester) err() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Write fails if earlier data could not be passed on.
func (d *Digester) Write(p []byte) (int, error) { return d.write(p, false) }

// Pass passes data on without digesting it, see [Digester.Resume]. It fails if earlier data could not be passed on.
func (d *Digester) Pass(p []byte) (int, error) { return d.write(p, true) }

func (d *Digester) write(p []byte, pass bool) (int, error) {
	if d.block != nil && d.passes != pass {
		d.flush()
	}
	d.passes = pass
	size := len(p)
	for len(p) > 0 {
		if err := d.err(); err != nil {
			return size - len(p), err
		}
		if d.block == nil {
			d.block = <-d.free
			d.block.data, d.block.passed = slices.Grow(d.block.data[:0], blockSize), pass
		}
		n := min(len(p), blockSize-len(d.block.data))
		d.block.data = append(d.block.data, p[:n]...)
		if p = p[n:]; len(d.block.data) == blockSize {
			d.flush()
		}
	}
	return size, nil
}

func (d *Digester) flush() {
	b := d.block
	d.block = nil
	b.readers.Store(int32(len(d.readers)))
	for _, in := range d.readers {
		in <- b
	}
}

// idle waits until all readers are done with what was written. It fails if some of it could not be passed on, since the digests may lack
// that.
func (d *Digester) idle() error {
	if d.block != nil {
		d.flush()
	}
	var all []*block
	for range blocks {
		all = append(all, <-d.free)
	}
	for _, b := range all {
		d.free <- b
	}
	return d.err()
}

// A state says how far both digests are.
type state struct {
	Recipe         string // of the code that made it: no other resumes from it
	SHA256, SHA512 []byte
}

// State returns the state of the digests of all that was written until now, for Resume. What was only passed on is not in it. It fails if
// some data could not be passed on.
func (d *Digester) State() ([]byte, error) {
	if err := d.idle(); err != nil {
		return nil, err
	}
	s := state{Recipe: code.Digest()}
	var err1, err2 error
	s.SHA256, err1 = d.sha256.(encoding.BinaryMarshaler).MarshalBinary()
	s.SHA512, err2 = d.sha512.(encoding.BinaryMarshaler).MarshalBinary()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Resume continues with a state that State has returned: as if what led to it had been written, which the caller passes on. It fails for
// any other state, and then the digests are as before.
func (d *Digester) Resume(from []byte) error {
	var s state
	if err := json.Unmarshal(from, &s); err != nil {
		return err
	}
	if s.Recipe != code.Digest() {
		return errors.New("a state of other code")
	}
	short, long := sha256.New(), sha512.New()
	err := errors.Join(short.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.SHA256),
		long.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.SHA512))
	if err != nil {
		return err
	}
	if err := d.idle(); err != nil {
		return err
	}
	return errors.Join(d.sha256.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.SHA256),
		d.sha512.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.SHA512))
}

// Digest waits until all data has been passed on, and returns the data's digest. It must be called exactly once, after the last
// Write. It fails if some data could not be passed on.
func (d *Digester) Digest() (Digest, error) {
	if d.block != nil {
		d.flush()
	}
	for _, in := range d.readers {
		close(in)
	}
	d.done.Wait()
	return Digest{hex.EncodeToString(d.sha256.Sum(nil)), hex.EncodeToString(d.sha512.Sum(nil))}, d.err()
}

// Of returns the digest of what a reader has, and its size in bytes.
func Of(r io.Reader) (Digest, int64, error) {
	short, long := sha256.New(), sha512.New()
	n, err := io.Copy(io.MultiWriter(short, long), r)
	return Digest{hex.EncodeToString(short.Sum(nil)), hex.EncodeToString(long.Sum(nil))}, n, err
}

// SHA256 returns the SHA-256 of what a reader has, in hex, and its size in bytes.
func SHA256(r io.Reader) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// File returns the SHA-256 of a file, in hex.
func File(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum, _, err := SHA256(f)
	return sum, err
}

// Create makes a file from what a function writes, and computes its digest on the way.
func Create(name string, write func(io.Writer) error) (Digest, error) {
	f, err := os.Create(name)
	if err != nil {
		return Digest{}, err
	}
	d := NewDigester(f)
	err = write(d)
	digest, failed := d.Digest()
	return digest, cmp.Or(err, failed, f.Close())
}

// SHA256SUMS returns the content of a file for sha256sum -c, sorted by name.
func (s Sums) SHA256SUMS() []byte {
	return s.format(func(d Digest) string { return d.SHA256 })
}

// SHA512SUMS returns the content of a file for sha512sum -c, sorted by name.
func (s Sums) SHA512SUMS() []byte {
	return s.format(func(d Digest) string { return d.SHA512 })
}

func (s Sums) format(sum func(Digest) string) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		b.WriteString(line(sum(s[name]), name))
	}
	return b.Bytes()
}

// A name that would break its line is escaped, and a backslash before the sum says so.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func line(sum, name string) string {
	escaped := escape.Replace(name)
	if escaped != name {
		sum = `\` + sum
	}
	return sum + "  " + escaped + "\n"
}

// Parse reads a file for sha256sum -c or sha512sum -c: sums in hex by name.
func Parse(data []byte) (map[string]string, error) {
	sums := map[string]string{}
	n := 0
	for text := range strings.Lines(string(data)) {
		n++
		rest, escaped := strings.CutPrefix(strings.TrimSuffix(text, "\n"), `\`)
		sum, name, ok := strings.Cut(rest, "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size && len(raw) != sha512.Size {
			return nil, fmt.Errorf("line %d is not SUM  NAME", n)
		}
		if escaped {
			name = unescape.Replace(name)
		}
		if sums[name] != "" {
			return nil, fmt.Errorf("line %d: duplicate name %q", n, name)
		}
		sums[name] = sum
	}
	return sums, nil
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
