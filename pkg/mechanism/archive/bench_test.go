package archive

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// program is a Go binary: this test's own.
func program(b *testing.B) []byte {
	b.Helper()
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// programs returns a dozen different programs.
func programs(b *testing.B) []Entry {
	b.Helper()
	dir := b.TempDir()
	p := program(b)
	var entries []Entry
	for i := range 12 {
		p[0] = byte(i)
		name := "bin/" + string(rune('a'+i))
		entries = append(entries, Entry{Name: name, Mode: 0o755, Path: writeFile(b, filepath.Join(dir, name), p), Sum: sumOf(p)})
	}
	return entries
}

func BenchmarkGzipOfTheStandardLibrary(b *testing.B) {
	p := program(b)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		w, err := gzip.NewWriterLevel(io.Discard, 6)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(p); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTarGz(b *testing.B) {
	entries := programs(b)
	var size int64
	for _, e := range entries {
		info, err := os.Stat(e.Path)
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size()
	}
	run := func(b *testing.B, cache string) {
		b.SetBytes(size)
		if err := (&Packer{Cache: cache}).TarGz(b.Context(), io.Discard, entries); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			run(b, b.TempDir())
		}
	})
	cache := b.TempDir()
	b.Run("one changed", func(b *testing.B) {
		run(b, cache)
		for b.Loop() {
			first, err := openCache(cache)
			if err != nil {
				b.Fatal(err)
			}
			if err := first.drop(segment{Sum: entries[0].Sum}); err != nil {
				b.Fatal(err)
			}
			run(b, cache)
		}
	})
	b.Run("warm", func(b *testing.B) {
		run(b, cache)
		for b.Loop() {
			run(b, cache)
		}
	})
}
