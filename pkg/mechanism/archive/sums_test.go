package archive

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"slipway.build/pkg/mechanism/checksum"
)

// stretch is enough for a few chunks.
const stretch = 4 * chunkSize

// A counter counts what is not digested.
type counter struct {
	*checksum.Digester
	passed int
}

func (c *counter) Pass(p []byte) (int, error) {
	c.passed += len(p)
	return c.Digester.Pass(p)
}

// digested packs entries, checks the digest, and returns how many bytes of the archive were not digested.
func digested(t *testing.T, p *Packer, entries []Entry) (passed int) {
	t.Helper()
	var b bytes.Buffer
	c := &counter{Digester: checksum.NewDigester(&b)}
	err := p.TarGz(t.Context(), c, entries)
	digest, failed := c.Digest()
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if want := (checksum.Digest{SHA256: sumOf(b.Bytes()), SHA512: fmt.Sprintf("%x", sha512.Sum512(b.Bytes()))}); digest != want {
		t.Errorf("the digest is %v, want %v", digest, want)
	}
	if !bytes.Equal(b.Bytes(), packed(t, &Packer{Cache: p.Cache}, entries)) {
		t.Error("the archive is another one than without a digest")
	}
	return c.passed
}

func TestWhatAnArchiveBeginsWithIsDigestedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := func(name string, seed uint64) Entry {
		data := bytes.Repeat(noise(seed, chunkSize), stretch/chunkSize+1)
		return Entry{Name: name, Path: writeFile(t, filepath.Join(dir, fmt.Sprint(name, seed)), data), Sum: sumOf(data)}
	}
	p := &Packer{Cache: t.TempDir(), stretch: stretch}
	entries := []Entry{file("dir/first", []byte("1")), large("dir/one", 1), large("dir/two", 2), {Name: "a", Data: []byte("1"), Last: true}}
	if got := digested(t, p, entries); got != 0 {
		t.Errorf("%d bytes were not digested the first time", got)
	}
	const one = stretch // of noise, which cannot be compressed
	for _, test := range []struct {
		name    string
		entries []Entry
		least   int
		most    int
	}{
		{"nothing changed", entries, 2 * one, 3 * one},
		{"the end changed", append(entries[:3:3], Entry{Name: "a", Data: []byte("2"), Last: true}), 2 * one, 3 * one},
		{"another end", append(entries[:3:3], Entry{Name: "an", Data: []byte("1"), Last: true}), 2 * one, 3 * one},
		{"the second one changed", []Entry{entries[0], entries[1], large("dir/two", 3), entries[3]}, one, 2*one - 1},
		{"the mode of the second one changed", []Entry{entries[0], entries[1],
			{Name: "dir/two", Mode: 0o700, Path: entries[2].Path, Sum: entries[2].Sum}, entries[3]}, one, 2*one - 1},
		{"the start changed", append([]Entry{file("dir/first", []byte("2"))}, entries[1:]...), 0, 0},
		{"the first name changed", append([]Entry{file("dir/f", []byte("1"))}, entries[1:]...), 0, 0},
	} {
		if got := digested(t, p, test.entries); got < test.least || got > test.most {
			t.Errorf("%s: %d bytes were not digested", test.name, got)
		}
	}
	for name, damage := range map[string]func([]byte) []byte{
		"flipped": func(b []byte) []byte { b[len(b)-3] ^= 1; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func([]byte) []byte { return nil },
		"whole, but no state": func([]byte) []byte {
			return fmt.Appendf(nil, "%x\n%s", sha256.Sum256([]byte("{}")), "{}")
		},
	} {
		for _, path := range cached(t, p.Cache, sumsExt) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, damage(b))
		}
		if got := digested(t, p, entries); got != 0 {
			t.Errorf("%s: %d bytes were not digested", name, got)
		}
		if got := digested(t, p, entries); got < 2*one {
			t.Errorf("%s: the states were not mended: %d bytes were not digested", name, got)
		}
	}
}

// again replaces a compressed form by another one of the same content, as if another compressor had made it.
func again(t *testing.T, path string) {
	t.Helper()
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	form := p[:len(p)-trailerSize]
	content, err1 := io.ReadAll(flate.NewReader(io.MultiReader(bytes.NewReader(form), bytes.NewReader(finalBlock))))
	var b bytes.Buffer
	w, err2 := flate.NewWriter(&b, flate.NoCompression)
	for half := range slices.Chunk(content, (len(content)+1)/2) {
		_, err := w.Write(half)
		err1 = errors.Join(err1, err, w.Flush())
	}
	var end trailer
	_, err3 := binary.Decode(p[len(form):], binary.LittleEndian, &end)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(b.Bytes(), form) {
		t.Fatal("it is the same form")
	}
	end.PackedSize, end.PackedCRC = int64(b.Len()), crc32.ChecksumIEEE(b.Bytes())
	end.TrailerCRC = end.sum()
	writeFile(t, path, append(b.Bytes(), end.bytes()...))
}

func TestStatesAreThoseOfCompressedBytes(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat(noise(1, chunkSize), 2*stretch/chunkSize)
	p := &Packer{Cache: t.TempDir(), stretch: stretch}
	entries := []Entry{{Name: "one", Path: writeFile(t, filepath.Join(t.TempDir(), "one"), data), Sum: sumOf(data)}}
	if got := digested(t, p, entries); got != 0 {
		t.Errorf("%d bytes were not digested the first time", got)
	}
	if got := digested(t, p, entries); got < stretch {
		t.Errorf("%d bytes were not digested the second time", got)
	}
	for _, path := range cached(t, p.Cache, packedExt) {
		again(t, path)
	}
	if got := digested(t, p, entries); got != 0 {
		t.Errorf("%d bytes were not digested though they are others", got)
	}
}

func TestAFullDiskLeavesNoState(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat(noise(1, chunkSize), 2*stretch/chunkSize)
	p := &Packer{Cache: t.TempDir(), stretch: stretch}
	entries := []Entry{{Name: "one", Path: writeFile(t, filepath.Join(t.TempDir(), "one"), data), Sum: sumOf(data)}}
	for _, room := range []int{1, stretch - 1<<20, stretch - 1} {
		d := checksum.NewDigester(&disk{room})
		if err := p.TarGz(t.Context(), d, entries); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d: %v", room, err)
		}
		if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d: the digest says %v", room, err)
		}
		if found := cached(t, p.Cache, sumsExt); len(found) != 0 {
			t.Errorf("room for %d: kept %v", room, found)
		}
	}
}

// A disk has room for some bytes.
type disk struct{ left int }

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	if d.left -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}
