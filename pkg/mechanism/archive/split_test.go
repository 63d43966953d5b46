package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTarFilesAreCutAtTheirMembers(t *testing.T) {
	t.Parallel()
	a, b := prose(1, 200_000), prose(2, minSegment)
	small := file("small", prose(3, 40_000))
	inner := tarred(t, file("a", a), small)
	gap := tarred(t, file("1", small.Data), file("2", small.Data), file("3", a))
	damaged := slices.Clone(inner)
	damaged[512+200_192+30]++ // in the header of small
	for _, test := range []struct {
		name    string
		content []byte
		want    [][]byte
	}{
		{"no tar file", a, [][]byte{a}},
		{"members", tarred(t, file("a", a), file("b", b)), [][]byte{a, b}},
		{"small members only", gap[:3*512+2*40_448], [][]byte{gap[:3*512+2*40_448]}},
		{"small", tarred(t, small), nil},
		{"tar in tar", tarred(t, file("b", b), file("layer.tar.gz", inner)), [][]byte{b, a}},
		{"long names", tarred(t, file(strings.Repeat("long", 90), a)), [][]byte{a}},
		{"after a link", tarred(t, file("x", a), Entry{Name: "l", Mode: fs.ModeSymlink, Link: "x"}), [][]byte{a}},
		{"bytes after the end", slices.Concat(inner, b), [][]byte{a, slices.Concat(inner[512+200_000:], b)}},
		{"large gap", gap, [][]byte{gap[:3*512+2*40_448], a}},
		{"cut", inner[:150_000], [][]byte{inner[:150_000]}},
		{"damaged header", damaged, [][]byte{damaged}},
		{"damaged inner", tarred(t, file("b", b), file("l", inner[:150_000])), [][]byte{b, inner[:150_000]}},
	} {
		var got [][]byte
		for _, s := range cut(bytes.NewReader(test.content), int64(len(test.content))) {
			got = append(got, test.content[s.Off:s.end()])
		}
		if !slices.EqualFunc(got, test.want, bytes.Equal) {
			t.Errorf("%s: cut into %v, want %v", test.name, lengths(got), lengths(test.want))
		}
	}
}

func lengths(parts [][]byte) (all []int) {
	for _, p := range parts {
		all = append(all, len(p))
	}
	return all
}

func TestSplitIsTheSameFromTheCache(t *testing.T) {
	t.Parallel()
	con, err := newContent(binaryAndImage(t, t.TempDir(), prose(1, minSegment))[1])
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cold, err := c.splitContent(t.Context(), con)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.split(con.sum, con.size); !ok {
		t.Error("not in the cache")
	}
	warm, err := c.splitContent(t.Context(), con)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cold, warm); diff != "" {
		t.Error(diff)
	}
}

// What is composed of known parts is what reading the whole file finds, or tarballs would depend on the state of the cache.
func TestRememberedFileIsCutAsIfItWereRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := writeFile(t, filepath.Join(dir, "binary"), prose(1, 3*chunkSize+1000))
	sum := func(p []byte) string { return fmt.Sprintf("%x", sha256.Sum256(p)) }
	for _, prepared := range []bool{true, false} {
		p := &Packer{Cache: t.TempDir(), Time: testTime}
		of := sum(prose(1, 3*chunkSize+1000))
		if prepared {
			if _, err := p.Prepare(t.Context(), binary); err != nil {
				t.Fatal(err)
			}
		}
		// As in an image's archive: a layer of a binary, and one of many small files, in a tar file.
		layer, err := p.Tarball([]Entry{{Name: "bin/binary", Mode: 0o755, Path: binary, Sum: of}, file("other", prose(2, 100_000))})
		if err != nil {
			t.Fatal(err)
		}
		var small []Entry
		for i := range 40 {
			small = append(small, file(fmt.Sprintf("small%d", i), prose(uint64(i), 3000)))
		}
		var inner, outer bytes.Buffer
		if _, err := layer.WriteTo(&inner); err != nil {
			t.Fatal(err)
		}
		if err := Tar(&outer, []Entry{file("a", tarred(t, small...)), file("b", inner.Bytes())}, testTime); err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(outer.Bytes(), inner.Bytes())
		var parts []Part
		for _, part := range layer.Parts() {
			parts = append(parts, Part{int64(at) + part.Off, part.Size, part.Sum})
		}
		if len(parts) != 1 || !bytes.Equal(outer.Bytes()[parts[0].Off:][:parts[0].Size], prose(1, 3*chunkSize+1000)) {
			t.Fatalf("parts %v, want that of the binary", parts)
		}
		// The binary in the file is not read if it is known.
		onDisk := bytes.Clone(outer.Bytes())
		if prepared {
			clear(onDisk[parts[0].Off:][:parts[0].Size])
		}
		image := writeFile(t, filepath.Join(dir, "image.tar"), onDisk)
		if err := p.Remember(t.Context(), image, sum(outer.Bytes()), crc32.ChecksumIEEE(outer.Bytes()), parts); err != nil {
			t.Fatal(err)
		}
		c, err := openCache(p.Cache)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := c.split(sum(outer.Bytes()), int64(outer.Len()))
		if !ok {
			t.Fatal("not in the cache")
		}
		con, err := newContent(Entry{Name: "image.tar", Path: writeFile(t, image, outer.Bytes())})
		if err != nil {
			t.Fatal(err)
		}
		if c, err = openCache(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		want, err := c.splitContent(t.Context(), con)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prepared: %t: %s", prepared, diff)
		}
	}
}

func TestWrongPartsAreNotRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := prose(1, chunkSize), prose(2, chunkSize)
	p := &Packer{Cache: t.TempDir(), Time: testTime}
	sum, err := p.Prepare(t.Context(), writeFile(t, filepath.Join(dir, "a"), a))
	if err != nil {
		t.Fatal(err)
	}
	both := tarred(t, file("a", a), file("b", b))
	of := fmt.Sprintf("%x", sha256.Sum256(both))
	part := Part{int64(bytes.Index(both, b)), chunkSize, sum} // it is not there
	path := writeFile(t, filepath.Join(dir, "both"), both)
	if err := p.Remember(t.Context(), path, of, crc32.ChecksumIEEE(both), []Part{part}); !errors.Is(err, errChanged) {
		t.Errorf("error is %v", err)
	}
	if known := cached(t, p.Cache, splitExt); len(known) != 1 {
		t.Errorf("the cache knows %v, want a alone", known)
	}
}

// Whatever looks like a tar file at its start: it is cut somewhere or nowhere, and all of it is packed.
func FuzzOddTarFiles(f *testing.F) {
	var image bytes.Buffer
	if err := Tar(&image, []Entry{file("a", prose(1, 70_000)), file("b", prose(2, 100))}, testTime); err != nil {
		f.Fatal(err)
	}
	f.Add(image.Bytes(), 124, []byte("77777777777"))
	f.Add(image.Bytes(), 156, []byte("S"))
	f.Add(image.Bytes(), 70_656+156, []byte("L"))
	f.Add(image.Bytes()[:66_000], 0, []byte{})
	f.Fuzz(func(t *testing.T, p []byte, at int, patch []byte) {
		p = slices.Clone(p)
		if at >= 0 && at < len(p) {
			copy(p[at:], patch)
		}
		if len(p) < minSegment {
			p = append(p, make([]byte, minSegment)...)
		}
		entries := []Entry{file("odd.tar", p)}
		if !bytes.Equal(gunzip(t, packed(t, &Packer{Time: testTime}, entries)), tarred(t, entries...)) {
			t.Error("other content")
		}
	})
}
