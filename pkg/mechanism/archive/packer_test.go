package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sample has every kind of fragment: glue of more than a chunk, contents of one and several chunks,
// incompressible ones, and an image archive that holds one of the contents again.
func sample(t testing.TB, dir string) []Entry {
	t.Helper()
	entries := binaryAndImage(t, dir, prose(1, chunkSize+minSegment))
	entries = append(entries,
		Entry{Name: "bin/other.tar", Path: entries[1].Path},
		Entry{Name: "noise", Path: writeFile(t, filepath.Join(dir, "noise"), noise(2, chunkSize+minSegment))},
		Entry{Name: "link", Mode: fs.ModeSymlink, Link: "noise"},
		Entry{Name: "data", Data: prose(3, minSegment)},
	)
	for i := range 20 {
		entries = append(entries, file("small/"+string(rune('A'+i)), prose(uint64(i), minSegment-1-i)))
	}
	return entries
}

func binaryAndImage(t testing.TB, dir string, binary []byte) []Entry {
	t.Helper()
	layer := tarred(t, Entry{Name: "usr/bin/binary", Mode: 0o755, Data: binary}, file("etc/passwd", []byte("root")))
	image := tarred(t, file("manifest.json", []byte("{}")), file("0123/layer.tar.gz", layer))
	return []Entry{
		{Name: "bin/binary", Mode: 0o755, Path: writeFile(t, filepath.Join(dir, "binary"), binary), Sum: sumOf(binary)},
		{Name: "bin/image.tar", Path: writeFile(t, filepath.Join(dir, "image"), image), Sum: sumOf(image)},
	}
}

func cached(t testing.TB, root, ext string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "*"+ext))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestBytesDependOnTheEntriesAlone(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := sample(t, dir)
	want := packed(t, &Packer{Time: testTime}, entries)
	check := func(what string, p Packer, entries []Entry) {
		t.Helper()
		p.Time = testTime
		if !bytes.Equal(want, packed(t, &p, entries)) {
			t.Errorf("%s: other bytes", what)
		}
	}
	for _, n := range []int{1, 2, 7} {
		check("without a cache", Packer{Workers: n}, entries)
		check("with an empty cache", Packer{Workers: n, Cache: t.TempDir()}, entries)
	}
	check("cold cache", Packer{Cache: cache}, entries)
	check("warm cache", Packer{Cache: cache}, entries)

	reversed := slices.Clone(entries)
	slices.Reverse(reversed)
	for i := range reversed {
		e := &reversed[i]
		if e.Mode.IsRegular() && e.Mode == 0 {
			e.Mode = 0o600
		}
		e.Sum = ""
		if e.Path != "" {
			if err := errors.Join(os.Chmod(e.Path, 0o640), os.Chtimes(e.Path, time.Now(), time.Unix(1, 0))); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("other order, modes and times", Packer{Workers: 2}, reversed)
	check("the same, warm", Packer{Cache: cache}, reversed)
}

func TestOutputIsOnePlainGzipMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, entries := range map[string][]Entry{"sample": sample(t, dir), "nothing": nil} {
		gz := packed(t, &Packer{Time: testTime}, entries)
		if !bytes.HasPrefix(gz, []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) {
			t.Errorf("%s: header is % x", name, gz[:10])
		}
		if !bytes.Equal(gunzip(t, gz), tarred(t, entries...)) {
			t.Errorf("%s: content is not what Tar writes", name)
		}
	}
}

func TestContentIsCompressedOnce(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	packed(t, &Packer{Cache: cache}, sample(t, dir))
	// The binary's three chunks, alone and in two image archives; noise; data.
	if got := cached(t, cache, packedExt); len(got) != 5 {
		t.Errorf("cache holds %d compressed forms, want 5: %v", len(got), got)
	}
	if got := cached(t, cache, tempExt); len(got) != 0 {
		t.Errorf("cache holds temporary files: %v", got)
	}
}

func TestKnownContentIsNotRead(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := binaryAndImage(t, dir, prose(1, chunkSize+minSegment))
	want := packed(t, &Packer{Cache: cache}, entries)
	// If it were read, this would be noticed.
	writeFile(t, entries[0].Path, make([]byte, chunkSize+minSegment))
	f, err := os.OpenFile(entries[1].Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, minSegment), chunkSize/2); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, packed(t, &Packer{Cache: cache}, entries)) {
		t.Error("other bytes")
	}
}

func TestManyPackersShareACache(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	entries := sample(t, dir)
	want := packed(t, &Packer{}, entries)
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			var b bytes.Buffer
			p := &Packer{Cache: cache, Workers: 1 + n%2}
			if err := p.TarGz(t.Context(), &b, entries[n%2:]); err != nil {
				t.Error(err)
			}
			if n%2 == 0 && !bytes.Equal(want, b.Bytes()) {
				t.Error("other bytes")
			}
		})
	}
	wg.Wait()
}

func TestWaitingForAnotherPackerThatFails(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	p := prose(1, 2*chunkSize)
	entries := []Entry{{Name: "f", Path: writeFile(t, filepath.Join(dir, "f"), p), Sum: sumOf(p)}}
	bad := []Entry{{Name: "f", Path: writeFile(t, filepath.Join(dir, "g"), prose(2, 2*chunkSize)), Sum: sumOf(p)}}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := (&Packer{Cache: cache}).TarGz(t.Context(), io.Discard, entries); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { // fails, unless the right content is there already
			_ = (&Packer{Cache: cache}).TarGz(t.Context(), io.Discard, bad)
		})
	}
	wg.Wait()
}

func TestIncompressibleContentIsStored(t *testing.T) {
	t.Parallel()
	n := 3 * chunkSize
	size := len(packed(t, &Packer{}, []Entry{file("noise", noise(1, n))}))
	if limit := n + n/maxStored*5 + 400; size > limit {
		t.Errorf("%d bytes became %d, want at most %d", n, size, limit)
	}
}

func TestChangedFilesAreNamed(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1000, 3 * minSegment} {
		dir := t.TempDir()
		p := prose(1, size)
		path := writeFile(t, filepath.Join(dir, "f"), p)
		image := writeFile(t, filepath.Join(dir, "i"), tarred(t, file("f", p)))
		wrong := sumOf([]byte("other"))
		for name, entry := range map[string]Entry{
			"wrong sum":        {Name: "f", Path: path, Sum: wrong},
			"wrong sum of tar": {Name: "f", Path: image, Sum: wrong},
		} {
			var b bytes.Buffer
			for _, err := range []error{
				(&Packer{}).TarGz(t.Context(), &b, []Entry{entry}),
				Tar(io.Discard, []Entry{entry}, testTime),
			} {
				if !errors.Is(err, errChanged) || !strings.Contains(err.Error(), entry.Path) {
					t.Errorf("%s, %d bytes: error is %v", name, size, err)
				}
			}
			if z, err := gzip.NewReader(&b); err == nil {
				if _, err := io.Copy(io.Discard, z); err == nil {
					t.Errorf("%s, %d bytes: the archive looks complete", name, size)
				}
			}
		}
		for name, change := range map[string]func() error{
			"cut":       func() error { return os.Truncate(path, int64(size-1)) },
			"grown":     func() error { return os.Truncate(path, int64(size+1)) },
			"rewritten": func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
			"removed":   func() error { return os.Remove(path) },
		} {
			writeFile(t, path, p)
			members, err := layout([]Entry{{Name: "f", Path: path}}, testTime)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			c, err := openCache(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			err = newPacking(c, make(workers, 2), members).run(t.Context(), io.Discard)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %d bytes: error is %v", name, size, err)
			}
		}
	}
}

// A file that changes after the scan that computed its sums has others when it is compressed.
func TestContentThatChangesAfterTheScan(t *testing.T) {
	t.Parallel()
	path := writeFile(t, filepath.Join(t.TempDir(), "f"), prose(1, 2*chunkSize))
	con, err := newContent(Entry{Name: "f", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.splitContent(t.Context(), con)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, prose(2, 2*chunkSize))
	if err := os.Chtimes(path, time.Time{}, con.modTime); err != nil {
		t.Fatal(err)
	}
	if err := c.ensure(t.Context(), make(workers, 1), con, s.Segments[0]); !errors.Is(err, errChanged) {
		t.Errorf("error is %v", err)
	}
	if c.has(s.Segments[0]) {
		t.Error("the cache holds it all the same")
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestErrorsOfTheWriterPassThrough(t *testing.T) {
	t.Parallel()
	entries := sample(t, t.TempDir())
	for _, room := range []int{0, chunkSize} {
		full := writerFunc(func(p []byte) (int, error) {
			if room -= len(p); room < 0 {
				return 0, &fs.PathError{Op: "write", Path: "x.tar.gz", Err: syscall.ENOSPC}
			}
			return len(p), nil
		})
		if err := (&Packer{}).TarGz(t.Context(), full, entries); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("error is %v, want ENOSPC", err)
		}
	}
}

func TestErrorsOfTheCachePassThrough(t *testing.T) {
	t.Parallel()
	path := writeFile(t, filepath.Join(t.TempDir(), "file"), nil)
	err := (&Packer{Cache: path}).TarGz(t.Context(), io.Discard, nil)
	if !errors.Is(err, syscall.ENOTDIR) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want one that says %s is not a directory", err, path)
	}
}

func TestCancelStops(t *testing.T) {
	t.Parallel()
	entries := sample(t, t.TempDir())
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var written int
	err := (&Packer{Cache: cache, Workers: 1}).TarGz(ctx, writerFunc(func(p []byte) (int, error) {
		cancel()
		written += len(p)
		return len(p), nil
	}), entries)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if left := cached(t, cache, tempExt); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if whole := len(packed(t, &Packer{}, entries)); written >= whole {
		t.Errorf("wrote all %d bytes", whole)
	}
}

func TestChangeInOneChunkCompressesThatChunk(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	content := prose(1, 5*chunkSize+minSegment+1)
	p := &Packer{Cache: cache}
	pack := func() {
		packed(t, p, []Entry{{Name: "binary", Path: writeFile(t, filepath.Join(dir, "binary"), content), Sum: sumOf(content)}})
	}
	pack()
	before := cached(t, cache, packedExt)
	content[2*chunkSize+7]++
	pack()
	if before, after := len(before), len(cached(t, cache, packedExt)); before != 6 || after != 7 {
		t.Errorf("%d compressed forms, then %d, want 6 and 7", before, after)
	}
}

func TestPreparedContentIsNotCompressedAgain(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	content := prose(1, minSegment+1000)
	entries := []Entry{{Name: "binary", Path: writeFile(t, filepath.Join(dir, "binary"), content)}}
	p := &Packer{Cache: cache}
	sum, err := p.Prepare(t.Context(), entries[0].Path)
	if want := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || sum != want {
		t.Fatalf("SHA-256 is %q, want %s: %v", sum, want, err)
	}
	forms := cached(t, cache, packedExt)
	if len(forms) != 1 {
		t.Fatalf("cache holds %v, want one compressed form", forms)
	}
	old := time.Now().Add(-touchEvery / 2).Truncate(time.Second) // a form that is made again has another time
	if err := os.Chtimes(forms[0], old, old); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed(t, p, entries), packed(t, &Packer{}, entries)) {
		t.Error("other bytes than without preparing")
	}
	if info, err := os.Stat(forms[0]); err != nil || !info.ModTime().Equal(old) {
		t.Error("the compressed form was made again", err)
	}
}

func TestPrepareKeepsNothingOfSmallFilesAndReportsMissingOnes(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	p := &Packer{Cache: cache}
	if sum, err := p.Prepare(t.Context(), writeFile(t, filepath.Join(dir, "small"), []byte("x"))); sum != "" || err != nil {
		t.Error(sum, err)
	}
	if forms := cached(t, cache, packedExt); len(forms) != 0 {
		t.Errorf("cache holds %v", forms)
	}
	if _, err := p.Prepare(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	large := writeFile(t, filepath.Join(dir, "large"), prose(2, 3*minSegment))
	if _, err := p.Prepare(ctx, large); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error is %v", err)
	}
}
