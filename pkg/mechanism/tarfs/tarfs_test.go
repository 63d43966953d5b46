package tarfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed returns a tar of some members.
func packed(t *testing.T, all ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range all {
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(h.Name)[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func opened(t *testing.T, data []byte) (*FS, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func TestFilesAreReadWhereTheyAre(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long/", 60) + "name"
	f, err := opened(t, packed(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir}, tar.Header{Name: "a/b"}, tar.Header{Name: long}))
	if err != nil {
		t.Fatal(err)
	}
	in, err := fs.Sub(f, "a")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(in, "b"); err != nil || string(data) != "a/b" {
		t.Errorf("a/b has %q, %v", data, err)
	}
	if data, err := fs.ReadFile(f, long); err != nil || string(data) != long {
		t.Errorf("%s has %q, %v", long, data, err)
	}
	if entries, err := fs.ReadDir(in, "."); err != nil || len(entries) != 1 || entries[0].Name() != "b" {
		t.Errorf("a has %v, %v", entries, err)
	}
	for _, name := range []string{"a", "b", "a/b/c"} {
		if _, err := f.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatLeavesTheRootIsRefused(t *testing.T) {
	t.Parallel()
	for _, h := range []tar.Header{
		{Name: "../a"}, {Name: "/a"}, {Name: "a/../b"}, {Name: "./a"}, {Name: `a\b`}, {Name: "first"}, {Name: "."},
		{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}, {Name: "a", Typeflag: tar.TypeLink, Linkname: "first"},
		{Name: "a", Typeflag: tar.TypeFifo},
	} {
		if _, err := opened(t, packed(t, tar.Header{Name: "first"}, h)); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s, type %c: %v", h.Name, h.Typeflag, err)
		}
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	t.Parallel()
	whole := packed(t, tar.Header{Name: "a"}, tar.Header{Name: "b"})
	for n := 0; n < len(whole); n += 31 {
		if _, err := opened(t, whole[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := opened(t, append(whole, 0)); !errors.Is(err, ErrLonger) {
		t.Errorf("a byte more: %v", err)
	}
}
