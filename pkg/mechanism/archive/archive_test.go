package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
)

var testTime = time.Unix(1_700_000_000, 987_654_321)

// noise is content that no compressor makes smaller.
func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(p)
	return p
}

// prose is content that compresses well.
func prose(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	words := []string{"kubelet ", "listens ", "on ", "port ", "10250 ", "and ", "nothing ", "else\n", "\x00\x00\x01\xff"}
	p := make([]byte, 0, n+16)
	for len(p) < n {
		p = append(p, words[r.IntN(len(words))]...)
		p = append(p, byte(r.Uint32()))
	}
	return p[:n]
}

func sumOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

func writeFile(t testing.TB, path string, p []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, p, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(name string, p []byte) Entry { return Entry{Name: name, Data: p} }

// packed returns the tarball that p makes of the entries.
func packed(t testing.TB, p *Packer, entries []Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.TarGz(context.Background(), &b, entries); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Tar(&b, entries, testTime); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// gunzip reads the first gzip member and expects that there is no more.
func gunzip(t testing.TB, p []byte) []byte {
	t.Helper()
	r := bytes.NewReader(p)
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 0 {
		t.Fatalf("%d bytes after the first gzip member", r.Len())
	}
	return out
}

// A seen is a member as archive/tar reads it.
type seen struct {
	Name, Link string
	Type       byte
	Mode       int64
	Data       string
}

func untar(t testing.TB, p []byte) []seen {
	t.Helper()
	var all []seen
	for r := tar.NewReader(bytes.NewReader(p)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(testTime.Truncate(time.Second)) {
			t.Errorf("%s: owner %d:%d (%q:%q), time %v", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seen{h.Name, h.Linkname, h.Typeflag, h.Mode, string(data)})
	}
}

// randomEntries is a tree without missing directories, with content as data and as files in dir, and what a
// reader is to see of it.
func randomEntries(t testing.TB, seed uint64, count int, dir string) ([]Entry, []seen) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	names := map[string]bool{}
	dirs := []string{""}
	var entries []Entry
	var want []seen
	for range count {
		name := dirs[r.IntN(len(dirs))] + string(prose(r.Uint64(), 1)[0]&0x0f+'a')
		for range r.IntN(8) {
			name += string(rune("abc-. ü\\"[r.IntN(7)]))
		}
		if r.IntN(10) == 0 {
			name += string(bytes.Repeat([]byte("long"), r.IntN(60)))
		}
		if names[name] {
			continue
		}
		names[name] = true
		switch r.IntN(8) {
		case 0, 1:
			dirs = append(dirs, name+"/")
			entries = append(entries, Entry{Name: name, Mode: fs.ModeDir | 0o700})
			want = append(want, seen{name + "/", "", tar.TypeDir, 0o755, ""})
		case 2:
			entries = append(entries, Entry{Name: name, Mode: fs.ModeSymlink, Link: "../" + name})
			want = append(want, seen{name, "../" + name, tar.TypeSymlink, 0o777, ""})
		default:
			n := r.IntN(2000)
			if r.IntN(4) == 0 {
				n = r.IntN(3 * minSegment)
			}
			if r.IntN(30) == 0 {
				n = r.IntN(2 * chunkSize)
			}
			p := prose(r.Uint64N(30), n)
			switch r.IntN(5) {
			case 0:
				p = noise(r.Uint64N(30), n)
			case 1:
				p = tarred(t, file("noise", noise(3, n/2)), file("prose", p))
			}
			e, mode := Entry{Name: name, Mode: 0o640}, int64(0o644)
			if r.IntN(2) == 0 {
				e.Mode, mode = 0o701, 0o755
			}
			if r.IntN(2) == 0 {
				e.Data = p
			} else {
				e.Path = writeFile(t, filepath.Join(dir, sumOf(p)), p)
				if r.IntN(2) == 0 {
					e.Sum = sumOf(p)
				}
			}
			entries = append(entries, e)
			want = append(want, seen{name, "", tar.TypeReg, mode, string(p)})
		}
	}
	return entries, want
}

func checkSeen(t testing.TB, got, want []seen) {
	t.Helper()
	sorted := map[string]seen{}
	for _, s := range want {
		sorted[s.Name] = s
	}
	all := map[string]seen{}
	for i, s := range got {
		all[s.Name] = s
		if i > 0 && trimSlash(got[i-1].Name) >= trimSlash(s.Name) {
			t.Errorf("%s after %s", s.Name, got[i-1].Name)
		}
	}
	if len(all) != len(got) {
		t.Errorf("%d names for %d members", len(all), len(got))
	}
	if diff := cmp.Diff(sorted, all); diff != "" {
		t.Errorf("other members (-want +got):\n%.2000s", diff)
	}
}

func trimSlash(name string) string { return string(bytes.TrimSuffix([]byte(name), []byte("/"))) }

func FuzzReadersSeeWhatWasPacked(f *testing.F) {
	for _, seed := range []uint64{0, 1, 2} {
		f.Add(seed, uint8(1+20*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, count uint8) {
		entries, want := randomEntries(t, seed, int(count), t.TempDir())
		p := &Packer{Time: testTime, Cache: t.TempDir(), Workers: 2}
		gz := packed(t, p, entries)
		plain := gunzip(t, gz)
		checkSeen(t, untar(t, plain), want)
		if !bytes.Equal(plain, tarred(t, entries...)) {
			t.Error("Tar and TarGz differ")
		}
		if !bytes.Equal(gz, packed(t, p, entries)) {
			t.Error("another archive with a filled cache")
		}
	})
}

func TestGNUTarUnpacksWhatWasPacked(t *testing.T) {
	t.Parallel()
	program := needs.Program(t, "tar")
	entries, want := randomEntries(t, 11, 60, t.TempDir())
	gz := writeFile(t, filepath.Join(t.TempDir(), "x.tar.gz"), packed(t, &Packer{Time: testTime}, entries))
	dir := t.TempDir()
	if out, err := exec.Command(program, "-xzf", gz, "-C", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range want {
		path := filepath.Join(dir, s.Name)
		info, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		switch s.Type {
		case tar.TypeDir:
			if !info.IsDir() {
				t.Errorf("%s is not a directory", s.Name)
			}
		case tar.TypeSymlink:
			if link, err := os.Readlink(path); err != nil || link != s.Link {
				t.Errorf("%s leads to %q, want %q (%v)", s.Name, link, s.Link, err)
			}
		default:
			if p, err := os.ReadFile(path); err != nil || string(p) != s.Data {
				t.Errorf("%s has other content (%v)", s.Name, err)
			}
			if x := info.Mode()&0o100 != 0; x != (s.Mode == 0o755) {
				t.Errorf("%s: executable is %v", s.Name, x)
			}
			if !info.ModTime().Equal(testTime.Truncate(time.Second)) {
				t.Errorf("%s: time %v", s.Name, info.ModTime())
			}
		}
	}
}
