package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEntriesThatCannotBePacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "f"), []byte("x"))
	for _, test := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"absolute", []Entry{file("/etc/passwd", nil)}, `pack "/etc/passwd": name is not`},
		{"parent", []Entry{file("../x", nil)}, "name is not"},
		{"parent within", []Entry{file("a/../x", nil)}, "name is not"},
		{"unclean", []Entry{file("a//x", nil)}, "name is not"},
		{"slash at the end", []Entry{{Name: "a/", Mode: fs.ModeDir}}, "name is not"},
		{"dot", []Entry{{Name: ".", Mode: fs.ModeDir}}, "name is not"},
		{"empty", []Entry{file("", nil)}, "name is not"},
		{"NUL", []Entry{file("a\x00b", nil)}, "name is not"},
		{"not UTF-8", []Entry{file("a\xff", nil)}, "name is not"},
		{"twice", []Entry{file("a", nil), file("b", nil), file("a", nil)}, "pack a: name occurs twice"},
		{"twice as different types", []Entry{file("a", nil), {Name: "a", Mode: fs.ModeDir}}, "pack a: name occurs twice"},
		{"below a file", []Entry{file("a/b/c", nil), file("a", nil)}, "pack a/b/c: a is not a directory"},
		{"below a link", []Entry{file("a/b", nil), {Name: "a", Mode: fs.ModeSymlink, Link: "x"}}, "a is not a directory"},
		{"device", []Entry{{Name: "a", Mode: fs.ModeDevice}}, "pack a: cannot pack a file of type"},
		{"link without target", []Entry{{Name: "a", Mode: fs.ModeSymlink}}, "no target"},
		{"link with content", []Entry{{Name: "a", Mode: fs.ModeSymlink, Link: "x", Path: path}}, "has a content"},
		{"directory with content", []Entry{{Name: "a", Mode: fs.ModeDir, Data: []byte("x")}}, "has a content"},
		{"file with target", []Entry{{Name: "a", Link: "x"}}, "has a target"},
		{"data and path", []Entry{{Name: "a", Path: path, Data: []byte("x")}}, "both data and a path"},
		{"sum of data", []Entry{{Name: "a", Data: []byte("x"), Sum: sumOf([]byte("x"))}}, "a sum but no path"},
		{"malformed sum", []Entry{{Name: "a", Path: path, Sum: "abcd"}}, "not a SHA-256"},
		{"no file", []Entry{{Name: "a", Path: filepath.Join(dir, "none")}}, "none: no such file"},
		{"directory as a file", []Entry{{Name: "a", Path: dir}}, "not a regular file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			for _, err := range []error{
				Tar(&b, test.entries, testTime),
				(&Packer{}).TarGz(t.Context(), &b, test.entries),
			} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error is %v, want %q", err, test.want)
				}
			}
			if b.Len() > 0 {
				t.Errorf("wrote %d bytes", b.Len())
			}
		})
	}
}

func TestMissingDirectoriesAreAdded(t *testing.T) {
	t.Parallel()
	got := untar(t, tarred(t,
		file("a/b/c/d", nil), file("a/b/e", nil), file("a-b", nil), Entry{Name: "a/b/c", Mode: fs.ModeDir}, file("z/f", nil)))
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	want := []string{"a/", "a-b", "a/b/", "a/b/c/", "a/b/c/d", "a/b/e", "z/", "z/f"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// The parents of entries that are last are not.
func TestWhatIsLastComesLast(t *testing.T) {
	t.Parallel()
	entries := []Entry{file("b/x", nil), {Name: "a/b/first", Last: true}, file("a/z", nil), {Name: "a/a", Last: true},
		{Name: "c", Mode: fs.ModeSymlink, Link: "b", Last: true}}
	var names []string
	for _, s := range untar(t, tarred(t, entries...)) {
		names = append(names, s.Name)
	}
	want := []string{"a/", "a/b/", "a/z", "b/", "b/x", "a/a", "a/b/first", "c"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if _, err := NewTarball([]Entry{{Name: "d", Mode: fs.ModeDir, Last: true}}, testTime); err == nil {
		t.Error("a directory is last")
	}
}

func TestModesAreNormal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		e    Entry
		want int64
	}{
		{Entry{Mode: 0o000}, 0o644},
		{Entry{Mode: 0o666}, 0o644},
		{Entry{Mode: 0o601}, 0o644},
		{Entry{Mode: 0o654}, 0o644},
		{Entry{Mode: 0o100}, 0o755},
		{Entry{Mode: 0o744}, 0o755},
		{Entry{Mode: 0o777 | fs.ModeSetuid}, 0o4755},
		{Entry{Mode: 0o777 | fs.ModeSetgid}, 0o755},
		{Entry{Mode: 0o700 | fs.ModeDir}, 0o755},
		{Entry{Mode: 0o777 | fs.ModeDir | fs.ModeSetgid}, 0o755},
		{Entry{Mode: 0o777 | fs.ModeDir | fs.ModeSticky}, 0o1777},
		{Entry{Mode: fs.ModeSymlink, Link: "x"}, 0o777},
	} {
		test.e.Name = "x"
		if got := untar(t, tarred(t, test.e)); got[0].Mode != test.want {
			t.Errorf("%v becomes %o, want %o", test.e.Mode, got[0].Mode, test.want)
		}
	}
}

func TestHeadersAreUSTARWhereTheyFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		header tar.Header
		want   tar.Format
	}{
		{"short", tar.Header{Name: "a"}, tar.FormatUSTAR},
		{"prefix", tar.Header{Name: strings.Repeat("d/", 70) + "a"}, tar.FormatUSTAR},
		{"long", tar.Header{Name: strings.Repeat("d", 101)}, tar.FormatPAX},
		{"long target", tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: strings.Repeat("d", 101)}, tar.FormatPAX},
		{"not ASCII", tar.Header{Name: "ü"}, tar.FormatPAX},
		{"almost 8 GiB", tar.Header{Name: "a", Size: 8<<30 - 1}, tar.FormatUSTAR},
		{"8 GiB", tar.Header{Name: "a", Size: 8 << 30}, tar.FormatPAX},
		{"9 TiB", tar.Header{Name: "a", Size: 9 << 40}, tar.FormatPAX},
	} {
		b, err := header(test.header, testTime)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(b)%blockSize != 0 {
			t.Errorf("%s: header has %d bytes", test.name, len(b))
		}
		h, err := tar.NewReader(bytes.NewReader(b)).Next()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if h.Format != test.want || h.Name != test.header.Name || h.Size != test.header.Size {
			t.Errorf("%s: reads as %v, %s, %d bytes", test.name, h.Format, h.Name, h.Size)
		}
		if !h.ModTime.Equal(time.Unix(testTime.Unix(), 0)) {
			t.Errorf("%s: time is %v", test.name, h.ModTime)
		}
	}
}

func TestTarballIsReadAsOftenAsNeeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "f"), prose(1, 300_000))
	b, err := NewTarball([]Entry{{Name: "x/f", Path: path}, file("g", []byte("g")), file("empty", nil)}, testTime)
	if err != nil {
		t.Fatal(err)
	}
	var first bytes.Buffer
	if n, err := b.WriteTo(&first); err != nil || n != b.Size() {
		t.Fatalf("wrote %d, size is %d: %v", n, b.Size(), err)
	}
	for range 2 {
		var again bytes.Buffer
		if _, err := b.WriteTo(&again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Error("another tar file")
		}
	}
	if err := os.Truncate(path, 299_999); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WriteTo(&first); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("file was cut: error is %v, want one that names it", err)
	}
}

// Files that were prepared are checked, too, though by another sum.
func TestPreparedFileMustNotChange(t *testing.T) {
	t.Parallel()
	content := prose(1, 300_000)
	path := writeFile(t, filepath.Join(t.TempDir(), "f"), content)
	p := &Packer{Cache: t.TempDir(), Time: testTime}
	sum, err := p.Prepare(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Tarball([]Entry{{Name: "f", Path: path, Sum: sum}})
	if err != nil {
		t.Fatal(err)
	}
	if b.members[0].content.crc == nil {
		t.Error("its CRC-32 is not known")
	}
	var first bytes.Buffer
	if _, err := b.WriteTo(&first); err != nil || !bytes.Equal(first.Bytes(), tarred(t, file("f", content))) {
		t.Errorf("another tar file: %v", err)
	}
	content[200_000]++
	writeFile(t, path, content)
	if _, err := b.WriteTo(io.Discard); !errors.Is(err, errChanged) {
		t.Errorf("error is %v", err)
	}
}
