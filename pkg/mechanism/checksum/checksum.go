// Package checksum computes digests of files, and writes checksum files, SHA256SUMS and SHA512SUMS, in the form of sha256sum and
// sha512sum, which users check them with: `sha256sum -c SHA256SUMS`.
//
// What must never be in here: which files a release has, where they come from, and how they are made.
package checksum

import (
	"bufio"
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
	out            *feed
	sums           []*feed       // of both digests
	all            *bufio.Writer // to out and to sums
}

// blockSize, in bytes, is small enough to stay in the processor's cache until all have read it, and large enough for a write: 1 GiB took
// 0.80 s in pieces of 8 KiB, 0.43 s in pieces of 64, and 0.37 s in pieces of 1,024 (dd, three times each). Linux makes one folio of what
// is written at once. Larger ones were slower on another virtual machine, which had given its free memory back: 400 MB in pieces of 256
// KiB took twice the time of 8.
const blockSize = 64 << 10

// A feed passes on to a writer, in a goroutine of its own. A Write fails if the writer has failed before.
type feed struct {
	*io.PipeWriter
	done chan error
}

func newFeed(to io.Writer) *feed {
	r, w := io.Pipe()
	f := &feed{w, make(chan error, 1)}
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{to}, r, make([]byte, blockSize))
		_ = r.CloseWithError(err)
		f.done <- err
	}()
	return f
}

// Close waits until all has been passed on, and fails if something could not be.
func (f *feed) Close() error {
	_ = f.PipeWriter.Close() // never fails
	return <-f.done
}

// NewDigester returns a Digester that passes data on to a writer. The caller must call Digest, which ends its goroutines.
func NewDigester(to io.Writer) *Digester {
	d := &Digester{out: newFeed(to)}
	d.digest(sha256.New(), sha512.New())
	return d
}

// digest begins to write to digests.
func (d *Digester) digest(short, long hash.Hash) {
	d.sha256, d.sha512 = short, long
	d.sums = []*feed{newFeed(long), newFeed(short)}
	d.all = bufio.NewWriterSize(io.MultiWriter(d.out, d.sums[0], d.sums[1]), blockSize)
}

// digested waits until the digests have all that was written. After that, digest must be called before the next write.
func (d *Digester) digested() error {
	return errors.Join(d.all.Flush(), d.sums[0].Close(), d.sums[1].Close())
}

// Write fails if earlier data could not be passed on.
func (d *Digester) Write(p []byte) (written int, err error) {
	for block := range slices.Chunk(p, blockSize) { // so that the goroutines work side by side
		n, err := d.all.Write(block)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Pass passes data on without digesting it, see [Digester.Resume]. It fails if earlier data could not be passed on.
func (d *Digester) Pass(p []byte) (int, error) {
	if err := d.all.Flush(); err != nil {
		return 0, err
	}
	return d.out.Write(p)
}

// A state says how far both digests are.
type state struct {
	Recipe         string // of the code that made it: no other resumes from it
	SHA256, SHA512 []byte
}

// State returns the state of the digests of all that was written until now, for Resume. What was only passed on is not in it. It fails if
// some data could not be passed on.
func (d *Digester) State() ([]byte, error) {
	err := d.digested()
	d.digest(d.sha256, d.sha512)
	if err != nil {
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
	err = d.digested()
	d.digest(short, long)
	return err
}

// Digest waits until all data has been passed on, and returns the data's digest. It must be called exactly once, after the last
// Write. It fails if some data could not be passed on.
func (d *Digester) Digest() (Digest, error) {
	err := errors.Join(d.digested(), d.out.Close())
	return Digest{hex.EncodeToString(d.sha256.Sum(nil)), hex.EncodeToString(d.sha512.Sum(nil))}, err
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
