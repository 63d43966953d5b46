package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestDamagedCacheIsNoticedAndMended(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := append(binaryAndImage(t, dir, prose(1, minSegment+1000)), file("noise", noise(1, minSegment)))
	p := &Packer{Cache: cache}
	want := packed(t, p, entries)
	intact := map[string][]byte{}
	for _, path := range append(cached(t, cache, packedExt), cached(t, cache, splitExt)...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		intact[path] = b
	}
	if len(intact) != 5 {
		t.Fatalf("cache holds %d files, want 2 compressed forms and 3 splits", len(intact))
	}
	flip := func(at func(n int) int) func([]byte) []byte {
		return func(b []byte) []byte {
			b[at(len(b))] ^= 0x10
			return b
		}
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"first byte":        flip(func(int) int { return 0 }),
		"middle":            flip(func(n int) int { return n / 2 }),
		"magic":             flip(func(n int) int { return max(0, n-trailerSize) }),
		"size":              flip(func(n int) int { return max(0, n-trailerSize+41) }),
		"CRC":               flip(func(n int) int { return max(0, n-trailerSize+48) }),
		"last byte":         flip(func(n int) int { return n - 1 }),
		"cut":               func(b []byte) []byte { return b[:len(b)-1] },
		"cut in the middle": func(b []byte) []byte { return b[:len(b)/2] },
		"cut at the start":  func(b []byte) []byte { return slices.Delete(b, 0, 1) },
		"empty":             func([]byte) []byte { return nil },
		"zeros":             func(b []byte) []byte { return make([]byte, len(b)) },
		"longer":            func(b []byte) []byte { return append(b, 0) },
		"of another":        func([]byte) []byte { return slices.Clone(intact[cached(t, cache, packedExt)[0]]) },
	} {
		for path, b := range intact {
			writeFile(t, path, damage(slices.Clone(b)))
		}
		if !bytes.Equal(want, packed(t, p, entries)) {
			t.Errorf("%s: other bytes", name)
		}
		for path, b := range intact {
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%s: %s was not mended (%v)", name, filepath.Base(path), err)
			}
		}
	}
}

// A split whose checksum is right, but which is not that of the tar file.
func TestForgedSplitIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := binaryAndImage(t, dir, prose(1, minSegment+1000))[1:]
	p := &Packer{Cache: cache}
	want := packed(t, p, entries)
	path := cached(t, cache, splitExt)[0]
	c, err := openCache(cache)
	if err != nil {
		t.Fatal(err)
	}
	sum := entries[0].Sum
	info, err := os.Stat(entries[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(s *split){
		"nothing":         func(*split) {},
		"moved":           func(s *split) { s.Segments[0].Off += 512 },
		"outside":         func(s *split) { s.Segments[0].Size += 1 << 30 },
		"negative":        func(s *split) { s.Segments[0].Off = -5 },
		"other sum":       func(s *split) { s.Segments[0].Sum = sumOf([]byte("other")) },
		"malformed sum":   func(s *split) { s.Segments[0].Sum = "../../x" },
		"other CRC":       func(s *split) { *s.Segments[0].CRC++ },
		"no CRC":          func(s *split) { s.Segments[0].CRC = nil },
		"no segments":     func(s *split) { s.Segments = nil },
		"of another size": func(s *split) { s.Size++ },
	} {
		s, ok := c.split(sum, info.Size())
		if !ok {
			t.Fatalf("%s: no split in the cache", name)
		}
		forge(&s)
		list, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, fmt.Appendf(nil, "%x\n%s", sha256.Sum256(list), list))
		var b bytes.Buffer
		err = p.TarGz(t.Context(), &b, entries)
		if name == "other sum" {
			// The one thing that can be seen only by reading the segment; it is not in the cache.
			if err == nil && !bytes.Equal(want, b.Bytes()) {
				t.Errorf("%s: other bytes", name)
			}
			os.Remove(path)
			packed(t, p, entries)
			continue
		}
		if err != nil || !bytes.Equal(want, b.Bytes()) {
			t.Errorf("%s: other bytes (%v)", name, err)
		}
	}
}

func TestTrimRemovesWhatIsUnused(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := binaryAndImage(t, dir, prose(1, minSegment))
	p := &Packer{Cache: cache}
	packed(t, p, entries)
	now := time.Now()
	age := func(path string, d time.Duration) {
		t.Helper()
		if err := os.Chtimes(path, now.Add(-d), now.Add(-d)); err != nil {
			t.Fatal(err)
		}
	}
	old := filepath.Join(cache, "0123456789abcdef", sumOf(nil)+packedExt)
	sums := filepath.Join(filepath.Dir(old), sumOf(nil)+sumsExt)
	foreign := []string{filepath.Join(cache, "notes", "x.deflate"), filepath.Join(filepath.Dir(old), "x.deflate")}
	temp := cached(t, cache, packedExt)[0]
	temp = filepath.Join(filepath.Dir(temp), "."+filepath.Base(temp)+".1"+tempExt)
	for _, path := range append(foreign, old, sums, temp) {
		writeFile(t, path, nil)
		age(path, keepUnused+time.Hour)
	}
	mine := filepath.Dir(temp)
	var keep []string
	for _, path := range append(cached(t, cache, packedExt), cached(t, cache, splitExt)...) {
		if filepath.Dir(path) == mine {
			age(path, keepUnused-time.Hour)
			keep = append(keep, path)
		}
	}
	if err := p.Trim(); err != nil {
		t.Fatal(err)
	}
	for _, path := range append(keep, foreign...) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{old, sums, temp} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there", path)
		}
	}
	// Use makes them new again.
	packed(t, p, entries)
	files, err := os.ReadDir(mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || now.Sub(info.ModTime()) > touchEvery {
			t.Errorf("%s was used but looks old (%v)", f.Name(), err)
		}
		age(filepath.Join(mine, f.Name()), keepUnused+time.Minute)
	}
	if err := p.Trim(); err != nil {
		t.Fatal(err)
	}
	if files, err = os.ReadDir(mine); err != nil || len(files) != 0 {
		t.Errorf("left in the cache: %v (%v)", files, err)
	}
}

func TestTrimWithoutACache(t *testing.T) {
	t.Parallel()
	for _, p := range []Packer{{}, {Cache: filepath.Join(t.TempDir(), "none")}} {
		if err := p.Trim(); err != nil {
			t.Error(err)
		}
	}
}
