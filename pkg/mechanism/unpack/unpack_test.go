package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pack writes a .tar.gz of members, whose sizes are those of their contents.
func pack(t *testing.T, members ...member) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, m := range members {
		h := m.Header
		h.Size = int64(len(m.content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

type member struct {
	tar.Header
	content string
}

func file(name, content string) member {
	return member{tar.Header{Name: name, Typeflag: tar.TypeReg}, content}
}

func link(name, to string) member {
	return member{tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}, ""}
}

func all(string) bool { return true }

func TestUnpackKeepsContentsProgramsAndLinksInside(t *testing.T) {
	t.Parallel()
	program := file("./a/run", "x")
	program.Mode = 0o6755
	archive := pack(t, program, file("a/text", "hello"), file("other", "y"), link("b/link", "../a/text"))
	dir := t.TempDir()
	if err := Unpack(t.Context(), archive, dir, func(name string) bool { return name != "other" }); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b", "link")); err != nil || string(text) != "hello" {
		t.Errorf("through the link: %q, %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "run")); err != nil || info.Mode()&0o100 == 0 ||
		info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		t.Errorf("the program: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not wanted is there: %v", err)
	}
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, c := range []struct {
		name    string
		members []member
		want    error
	}{
		{"a name with ..", []member{file("../evil", "x")}, ErrUnsafe},
		{"a name with .. further on", []member{file("a/../../evil", "x")}, ErrUnsafe},
		{"an absolute name", []member{file(filepath.Join(outside, "evil"), "x")}, ErrUnsafe},
		{"a name with .. that is not wanted", []member{file("../unwanted", "x")}, ErrUnsafe},
		{"a link to the outside", []member{link("l", "../..")}, ErrUnsafe},
		{"an absolute link", []member{link("l", outside)}, ErrUnsafe},
		{"a link to the outside by way of another", []member{link("a/up", ".."), link("l", "a/up/../..")}, ErrUnsafe},
		{"a link that leads nowhere", []member{link("l", "nothing")}, ErrUnsafe},
		{"a link to itself", []member{link("l", "l")}, ErrUnsafe},
		{"a file below a link to the outside", []member{link("l", outside), file("l/evil", "x")}, nil},
		{"a folder below a link to the outside", []member{link("l", outside), {tar.Header{Name: "l/evil/", Typeflag: tar.TypeDir}, ""}}, nil},
		{"a file in the place of a link to the outside", []member{link("l", filepath.Join(outside, "evil")), file("l", "x")}, os.ErrExist},
		{"a hard link", []member{file("a", "x"), {tar.Header{Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}, ""}}, ErrUnsafe},
		{"a device", []member{{tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""}}, ErrUnsafe},
		{"a pipe", []member{{tar.Header{Name: "p", Typeflag: tar.TypeFifo}, ""}}, ErrUnsafe},
		{"a file twice", []member{file("a", "x"), file("a", "y")}, os.ErrExist},
		{"too many bytes", []member{file("a", strings.Repeat("x", 1<<20))}, ErrTooLarge},
		{"too many bytes of what is not wanted", []member{file("unwanted", strings.Repeat("x", 1<<20)), file("a", "")}, ErrTooLarge},
		{"too many members", []member{file("a", ""), file("b", ""), file("c", ""), file("d", ""), file("e", "")}, ErrTooLarge},
	} {
		archive, dir := pack(t, c.members...), filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		want := func(name string) bool { return !strings.HasSuffix(name, "unwanted") }
		f, err := os.Open(archive)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = atMost(t.Context(), f, archive, dir, want, 1<<20, 4)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), archive) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		for _, place := range []string{outside, filepath.Dir(dir)} {
			if found, _ := filepath.Glob(filepath.Join(place, "*evil*")); len(found) > 0 {
				t.Errorf("%s: wrote %q", c.name, found)
			}
		}
	}
}

func TestUnpackStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Unpack(ctx, pack(t, file("a", "x")), t.TempDir(), all); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUnpackNamesAnArchiveThatIsCutOff(t *testing.T) {
	t.Parallel()
	archive := pack(t, file("a", strings.Repeat("x", 1<<20)))
	if err := os.Truncate(archive, 700); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(t.Context(), archive, t.TempDir(), all); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), archive) {
		t.Errorf("error %v", err)
	}
}

func TestMembersAreReadOneByOne(t *testing.T) {
	t.Parallel()
	archive := pack(t, file("./a", "one"), link("b", "a"), file("c", "two"))
	var got []string
	for m, err := range MembersOf(t.Context(), archive) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(m)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, m.Name+" "+m.Linkname+string(text)); m.Name == "b" {
			break
		}
	}
	if want := []string{"a one", "b a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for what, name := range map[string]string{"no file": filepath.Join(t.TempDir(), "none"), "cut off": archive} {
		if what == "cut off" {
			if err := os.Truncate(archive, 30); err != nil {
				t.Fatal(err)
			}
		}
		var errs []error
		for _, err := range MembersOf(t.Context(), name) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), name) {
			t.Errorf("%s: errors %v", what, errs)
		}
	}
}

func TestRootFilesystemHasLinksOfItsOwn(t *testing.T) {
	t.Parallel()
	stream := func(members ...member) io.Reader {
		f, err := os.Open(pack(t, members...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		plain, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		return plain
	}
	dir := t.TempDir()
	inner := stream(link("bin", "usr/bin"), file("usr/bin/sh", "shell"), file("bin/ls", "list"), link("etc/alternatives/sh", "/usr/bin/sh"),
		link("dev/core", "/proc/kcore"))
	if err := RootFilesystem(t.Context(), inner, dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "usr", "bin", "ls")); err != nil || string(text) != "list" {
		t.Errorf("what was written through a link inside: %q, %v", text, err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "dev", "core")); err != nil || to != "/proc/kcore" {
		t.Errorf("a link to what is there once programs run: %q, %v", to, err)
	}

	outside := t.TempDir()
	for name, members := range map[string][]member{
		"through an absolute link": {link("out", outside), file("out/text", "x")},
		"through a relative link":  {link("out", "../"+filepath.Base(outside)), file("out/text", "x")},
		"by its name":              {file("../"+filepath.Base(outside)+"/text", "x")},
	} {
		if err := RootFilesystem(t.Context(), stream(members...), t.TempDir()); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}
