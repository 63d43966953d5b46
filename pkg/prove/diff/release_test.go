package diff_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/make/image"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/prove/diff"
)

// A content is a file in a tarball.
type content struct {
	name string
	mode int64
	data []byte
}

// pack makes a compressed tarball.
func pack(t *testing.T, level int, files ...content) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(1e9, 0), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// release makes a folder with a tarball and its checksums.
func release(t *testing.T, tarball []byte) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "kubernetes.tar.gz", tarball)
	write(t, dir, "SHA256SUMS", fmt.Appendf(nil, "%x  kubernetes.tar.gz\n", sha256.Sum256(tarball)))
	return dir
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// saved returns an archive of a container image with one file.
func saved(t *testing.T, text, user string) []byte {
	t.Helper()
	img, err := image.Build(image.Contents{
		OS: "linux", Arch: "amd64", User: user, Created: time.Unix(1e9, 0),
		Layers: []image.Layer{{Entries: []archive.Entry{{Name: "file", Data: []byte(text)}}, Comment: "a file"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, _, err := img.Save(t.Context(), &b, []string{"registry.example.com/image:v1"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReleases(t *testing.T) {
	t.Parallel()
	program1 := build(t, program, nil, stripped)
	program2 := build(t, program, nil, "-ldflags=-s -w -randlayout=7")
	binary := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one, two := binary(program1), binary(program2)
	text := content{"text", 0o644, []byte("text\n")}
	with := func(data []byte) []content { return []content{{"bin/program", 0o755, data}, text} }
	img := saved(t, "file", "1000")
	for _, tt := range []struct {
		name string
		a, b []byte
		want diff.Verdict
		in   string // the text
	}{
		{"same", pack(t, 6, with(one)...), pack(t, 6, with(one)...), diff.Same, "the same bytes: 2 files"},
		{"compressed in another way", pack(t, 1, with(one)...), pack(t, 9, with(one)...), diff.Different, "its members are the same"},
		{"another program", pack(t, 6, with(one)...), pack(t, 6, with(two)...), diff.Different,
			"kubernetes.tar.gz:bin/program\n           functions: have the same names"},
		{"other mode", pack(t, 6, text), pack(t, 6, content{"text", 0o755, text.data}), diff.Different, "mode: "},
		{"missing file", pack(t, 6, with(one)...), pack(t, 6, text), diff.Different, "kubernetes.tar.gz:bin/program\n           file: only in A"},
		{"one file more", pack(t, 6, text), pack(t, 6, with(one)...), diff.Different, "only in B"},
		{"other text", pack(t, 6, text), pack(t, 6, content{"text", 0o644, []byte("test\n")}), diff.Different, "first at byte 2"},
		{"other order", pack(t, 6, text, content{"z", 0o644, nil}), pack(t, 6, content{"z", 0o644, nil}, text), diff.Different, "another order"},
		{"text for a program", pack(t, 6, with(one)...), pack(t, 6, with([]byte("text"))...), diff.Different, "first at byte 0"},
		{"image", pack(t, 6, content{"i.tar", 0o644, img}), pack(t, 6, content{"i.tar", 0o644, saved(t, "file", "0")}), diff.Different,
			"image: configuration"},
		{"layer", pack(t, 6, content{"i.tar", 0o644, img}), pack(t, 6, content{"i.tar", 0o644, saved(t, "five", "1000")}),
			diff.Different, "layer1.tar:file"},
		{"another program in a layer", pack(t, 6, content{"i.tar", 0o644, saved(t, string(one), "")}),
			pack(t, 6, content{"i.tar", 0o644, saved(t, string(two), "")}),
			diff.Different, "has layers that are different"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			verdict, text := compare(t, release(t, tt.a), release(t, tt.b))
			if verdict != tt.want || !strings.Contains(text, tt.in) {
				t.Errorf("%s; want %s, with %q:\n%s", verdict, tt.want, tt.in, text)
			}
		})
	}
}

func TestWrongSumsAreDifferent(t *testing.T) {
	t.Parallel()
	a := release(t, pack(t, 1, content{"text", 0o644, []byte("text\n")}))
	b := release(t, pack(t, 9, content{"text", 0o644, []byte("text\n")}))
	write(t, b, "SHA256SUMS", fmt.Appendf(nil, "%x  kubernetes.tar.gz\n", sha256.Sum256(nil)))
	if verdict, text := compare(t, a, b); verdict != diff.Different || !strings.Contains(text, "sums: 1 lines differ") {
		t.Errorf("%s; want different:\n%s", verdict, text)
	}
}

func TestUnreadableFilesAreErrors(t *testing.T) {
	t.Parallel()
	whole := pack(t, 6, content{"text", 0o644, []byte("text\n")})
	a, b := release(t, whole), release(t, whole[:len(whole)-5])
	for _, pair := range [][2]string{{a, b}, {a, filepath.Join(a, "SHA256SUMS")}, {a, filepath.Join(a, "none")}} {
		if r, err := diff.Compare(t.Context(), pair[0], pair[1]); err == nil {
			t.Errorf("%q: %v, want an error", pair, r.Verdict)
		}
	}
}
