package debian

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.build/pkg/mechanism/archive"
)

// member is a file or link of a package; text is what it holds, or where it leads.
type member struct {
	kind byte
	name string
	text string
}

// deb makes a package. The suffix names the compression of its files.
func deb(t *testing.T, suffix string, members ...member) string {
	t.Helper()
	control := compress(t, ".xz", tarOf(t, []member{{tar.TypeReg, "./md5sums", sumsFile}, {tar.TypeReg, "./control", controlFile}}))
	return ar(t, "debian-binary", []byte("2.0\n\n"), "control.tar.xz", control, "data.tar"+suffix, compress(t, suffix, tarOf(t, members)))
}

const sumsFile = "d41d8cd98f00b204e9800998ecf8427e  usr/bin/ab\n"

const controlFile = "Package: ab\nVersion: 1.0-1\nArchitecture: amd64\n"

func tarOf(t *testing.T, members []member) []byte {
	t.Helper()
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, m := range members {
		h := &tar.Header{Typeflag: m.kind, Name: m.name, Mode: 0o755}
		if m.kind == tar.TypeReg {
			h.Size = int64(len(m.text))
		} else {
			h.Linkname = m.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if m.kind == tar.TypeReg {
			if _, err := w.Write([]byte(m.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func ar(t *testing.T, parts ...any) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(arMagic)
	for i := 0; i < len(parts); i += 2 {
		data := parts[i+1].([]byte)
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d%s", parts[i], 0, 0, 0, "100644", len(data), arEnd)
		b.Write(data)
		if len(data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return file(t, "a.deb", b.String())
}

func compress(t *testing.T, suffix string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	var err error
	switch suffix {
	case ".xz":
		w, err = xz.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	case ".gz":
		w = gzip.NewWriter(&b)
	default:
		return data
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func list(entries []archive.Entry) []string {
	var s []string
	for _, e := range entries {
		s = append(s, strings.TrimSpace(fmt.Sprintf("%s %s%s", e.Name, e.Link, e.Data)))
	}
	return s
}

func TestPackagesAreUnpackedWithoutDocumentation(t *testing.T) {
	t.Parallel()
	want := []string{"usr/bin/a program", "usr/bin/same program", "usr/bin/other a", "etc/alternative /usr/bin/a",
		"usr/share/doc/a/copyright free", "usr/share/doc/b a",
		"var/lib/dpkg/status.d/ab " + strings.TrimSpace(controlFile), "var/lib/dpkg/status.d/ab.md5sums " + strings.TrimSpace(sumsFile)}
	for _, suffix := range []string{".xz", ".zst", ".gz", ""} {
		entries, err := Unpack([]string{deb(t, suffix,
			member{tar.TypeDir, "./", ""},
			member{tar.TypeDir, "./usr/bin/", ""},
			member{tar.TypeReg, "./usr/bin/a", "program"},
			member{tar.TypeLink, "./usr/bin/same", "./usr/bin/a"},
			member{tar.TypeSymlink, "./usr/bin/other", "a"},
			member{tar.TypeSymlink, "./etc/alternative", "/usr/bin/a"},
			member{tar.TypeReg, "./usr/share/doc/a/copyright", "free"},
			member{tar.TypeReg, "./usr/share/doc/a/changelog.gz", "long"},
			member{tar.TypeSymlink, "./usr/share/doc/b", "a"},
			member{tar.TypeReg, "./usr/share/man/man1/a.1", "long"},
			member{tar.TypeReg, "./usr/lib/x86_64-linux-gnu/gconv/BIG5.so", "long"},
		)})
		if err != nil {
			t.Fatalf("%q: %v", suffix, err)
		}
		if got := list(entries); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", suffix, got, want)
		}
		if m := entries[0].Mode; m&0o100 == 0 || !m.IsRegular() {
			t.Errorf("%q: the program has the mode %v", suffix, m)
		}
		if m := entries[3].Mode; m&fs.ModeSymlink == 0 {
			t.Errorf("%q: the link has the mode %v", suffix, m)
		}
	}
}

func TestHostilePackagesAreRefused(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(deb(t, ".xz", member{tar.TypeReg, "./a", "b"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, want string }{
		"a file above":     {deb(t, ".xz", member{tar.TypeReg, "./../etc/passwd", ""}), `"./../etc/passwd" leads out of the package`},
		"an absolute file": {deb(t, ".xz", member{tar.TypeReg, "/etc/passwd", ""}), `"/etc/passwd" leads out of the package`},
		"a folder above":   {deb(t, ".xz", member{tar.TypeDir, "./a/../../", ""}), "leads out of the package"},
		"a link above": {deb(t, ".xz", member{tar.TypeSymlink, "./usr/a", "../../etc"}),
			"usr/a links to ../../etc, outside of the package"},
		"the same as above":     {deb(t, ".xz", member{tar.TypeLink, "./a", "../etc/passwd"}), `"../etc/passwd" leads out of the package`},
		"the same as nothing":   {deb(t, ".xz", member{tar.TypeLink, "./a", "./b"}), "a is the same file as b, which is not before it"},
		"a device":              {deb(t, ".xz", member{tar.TypeChar, "./dev/null", ""}), "dev/null has the type '3'"},
		"no package":            {file(t, "a.deb", "<html>"), "it is not a Debian package: it does not begin as one"},
		"no control file":       {ar(t, "debian-binary", []byte("2.0\n"), "data.tar", tarOf(t, nil)), "it has no control.tar"},
		"an empty control file": {ar(t, "data.tar", tarOf(t, nil), "control.tar", tarOf(t, nil)), "it has no file control"},
		"control of no package": {
			ar(t, "data.tar", tarOf(t, nil), "control.tar", tarOf(t, []member{{tar.TypeReg, "control", "Package: ../a\n"}})),
			"control names no package",
		},
		"no files":              {ar(t, "debian-binary", []byte("2.0\n")), "it has no data.tar"},
		"an unknown kind":       {ar(t, "data.tar.lz", []byte("a")), "data.tar.lz: unknown compression"},
		"cut short":             {file(t, "a.deb", string(whole[:len(whole)-100])), "data.tar.xz: "},
		"cut short in a header": {file(t, "a.deb", string(whole[:30])), "it has no data.tar"},
	} {
		_, err := Unpack([]string{tt.file})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.file) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func TestUnpackingEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	bomb := deb(t, ".xz", member{tar.TypeReg, "./a", strings.Repeat("0", 1<<20)})
	if info, err := os.Stat(bomb); err != nil || info.Size() > 10<<10 {
		t.Fatalf("it has %d bytes (%v), so it is not a bomb", info.Size(), err)
	}
	if _, err := unpack(bomb, 1<<19); err == nil || !strings.Contains(err.Error(), "it is too large when unpacked") {
		t.Errorf("error %v", err)
	}
	if _, err := unpack(bomb, 1<<21); err != nil {
		t.Error(err)
	}
}

func TestCopyrights(t *testing.T) {
	t.Parallel()
	entries := []archive.Entry{
		{Name: "usr/share/doc/a/copyright", Data: []byte("of a")},
		{Name: "usr/share/doc/b", Link: "a"},
		{Name: "usr/share/doc/c/copyright", Link: "../a/copyright"},
		{Name: "usr/share/common-licenses/GPL-3", Data: []byte("long")},
		{Name: "usr/share/common-licenses/GPL", Link: "GPL-3"},
		{Name: "usr/bin/a"},
	}
	owed, err := Copyrights(entries, []Package{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range owed {
		got = append(got, e.Name+" "+string(e.Data))
	}
	want := []string{"a/copyright of a", "b/copyright of a", "c/copyright of a", "common-licenses/GPL-3 long", "common-licenses/GPL long"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := Copyrights(entries, []Package{{Name: "d", Version: "1"}}); err == nil ||
		!strings.Contains(err.Error(), "package d 1 has no copyright file") {
		t.Errorf("error %v", err)
	}
}

// What is unpacked can be packed, and read again as it was.
func TestUnpackedFilesSurviveATar(t *testing.T) {
	t.Parallel()
	entries, err := Unpack([]string{deb(t, ".xz", member{tar.TypeReg, "./usr/bin/a", "program"},
		member{tar.TypeSymlink, "./usr/bin/b", "/usr/bin/a"})})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.tar")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := archive.Tar(f, entries, time.Time{}); err != nil {
		t.Fatal(err)
	}
	back, err := archive.ReadTar(name)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(list(back), list(entries)) || back[0].Mode&0o100 == 0 {
		t.Errorf("got %q, want %q", list(back), list(entries))
	}
}
