package checksum

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func writeFiles(t *testing.T, dir string, files map[string]string) (names []string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

var sample = map[string]string{
	"kubelet":       "kubelet\n",
	"a/b/c.tar.gz":  strings.Repeat("0123456789abcdef", 6<<16) + "x", // more than all blocks
	"full":          strings.Repeat("m", 1<<20),                      // exactly all blocks
	"empty":         "",
	"with blanks ":  "1",
	"back\\slash":   "2",
	"new\nline\\n":  "3",
	"*star":         "4",
	" blank before": "5",
}

// sumsOf digests files, written in pieces.
func sumsOf(t *testing.T, dir string, names []string) Sums {
	t.Helper()
	sums := Sums{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var to bytes.Buffer
		d := NewDigester(&to)
		for piece := range slices.Chunk(data, 1000) {
			if n, err := d.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if sums[name], err = d.Digest(); err != nil || !bytes.Equal(to.Bytes(), data) {
			t.Fatalf("%q: %d bytes were passed on, not %d (%v)", name, to.Len(), len(data), err)
		}
	}
	return sums
}

// full takes some bytes and no more.
type full struct{ left int }

func (w *full) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	if w.left -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestFullDiskStopsTheWriter(t *testing.T) {
	t.Parallel()
	for _, room := range []int{0, 1, 3 * blockSize} {
		d := NewDigester(&full{room})
		written, err := io.Copy(d, io.LimitReader(zeros{}, 1<<30))
		if !errors.Is(err, syscall.ENOSPC) || written > int64(room+(blocks+1)*blockSize) {
			t.Errorf("room for %d: %d written, %v", room, written, err)
		}
		if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d: the digest says %v", room, err)
		}
	}
	d := NewDigester(&full{1})
	if n, err := d.Write([]byte("two bytes")); n != 9 || err != nil {
		t.Errorf("%d, %v", n, err) // not passed on yet
	}
	if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the digest says %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestDigestMatchesTheContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := sumsOf(t, dir, writeFiles(t, dir, sample))
	for name, text := range sample {
		want := Digest{
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
			SHA512: fmt.Sprintf("%x", sha512.Sum512([]byte(text))),
		}
		if sums[name] != want {
			t.Errorf("%q: %v, want %v", name, sums[name], want)
		}
	}
}

func TestLinesAreSortedAndEscaped(t *testing.T) {
	t.Parallel()
	sums := Sums{
		"b": {SHA256: "2b", SHA512: "5b"}, "a\\x": {SHA256: "2a", SHA512: "5a"},
		"a\n": {SHA256: "20", SHA512: "50"}, "B": {SHA256: "2B", SHA512: "5B"}, "a\r": {SHA256: "2r", SHA512: "5r"},
	}
	want := "2B  B\n" + `\20  a\n` + "\n" + `\2r  a\r` + "\n" + `\2a  a\\x` + "\n2b  b\n"
	if got := string(sums.SHA256SUMS()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := string(sums.SHA512SUMS()); !strings.HasPrefix(got, "5B  B\n\\50") {
		t.Errorf("got\n%s", got)
	}
}

func TestVerifyAcceptsWhatWasSummed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := sumsOf(t, dir, writeFiles(t, dir, sample))
	for name, text := range map[string]string{
		"SHA256SUMS":  string(sums.SHA256SUMS()),
		"SHA512SUMS":  string(sums.SHA512SUMS()),
		"no newline":  strings.TrimSuffix(string(sums.SHA256SUMS()), "\n"),
		"both":        string(Sums{"kubelet": sums["kubelet"]}.SHA256SUMS()) + string(Sums{"empty": sums["empty"]}.SHA512SUMS()),
		"binary mode": sums["kubelet"].SHA256 + " *kubelet\n",
		"upper case":  strings.ToUpper(sums["kubelet"].SHA256) + "  kubelet\n",
	} {
		path := filepath.Join(t.TempDir(), "sums")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir, path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerifyNamesEveryWrongLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "a", "b": "b", "sub/c": "c"})
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	a, b := sum("a"), sum("b")
	for _, test := range []struct {
		name, text string
		is         error
		want       []string // one line of the error each, after the file's name
	}{
		{"differs", a + "  a\n" + a + "  b\n", ErrDiffers, []string{":2: b: content differs: its sum is " + b + ", want " + a}},
		{"missing", a + "  x\n" + b + "  b\n", fs.ErrNotExist, []string{":1: x: open "}},
		{"a folder", a + "  sub\n", nil, []string{":1: sub: read "}},
		{"several", a + "  b\n" + a + "  a\n?\n" + b + "  x\n", ErrMalformed, []string{":1: b: ", ":3: malformed", ":4: x: "}},
		{"empty line", a + "  a\n\n" + b + "  b\n", ErrMalformed, []string{":2: malformed line: want a sum"}},
		{"empty line at the end", a + "  a\n\n", ErrMalformed, []string{":2: malformed line"}},
		{"comment", "# sums\n" + a + "  a\n", ErrMalformed, []string{":1: "}},
		{"one blank", a + " a\n", ErrMalformed, []string{":1: malformed line"}},
		{"no name", a + "  \n", ErrMalformed, []string{":1: malformed line"}},
		{"short sum", a[1:] + "  a\n", ErrMalformed, []string{":1: a: malformed line: "}},
		{"SHA-1", a[:40] + "  a\n", ErrMalformed, []string{":1: a: malformed line: "}},
		{"no hex", "x" + a[1:] + "  a\n", ErrMalformed, []string{":1: a: malformed line: "}},
		{"unknown escape", `\` + a + `  a\t` + "\n", ErrMalformed, []string{`:1: a\t: malformed line: unknown escape`}},
		{"needless escape", `\` + a + `  a\`, ErrMalformed, []string{`:1: a\: malformed line: unknown escape`}},
		{"twice", a + "  a\n" + a + "  a\n", ErrMalformed, []string{":2: a: malformed line: is on line 1"}},
		{"absolute", a + "  /etc/passwd\n", ErrMalformed, []string{":1: /etc/passwd: malformed line: name leads out"}},
		{"parent", a + "  sub/../../a\n", ErrMalformed, []string{":1: sub/../../a: malformed line: name leads out"}},
		{"carriage return", a + "  a\r\n", fs.ErrNotExist, []string{":1: a\r: open"}},
		{"nothing", "", nil, []string{": no sums"}},
	} {
		path := filepath.Join(t.TempDir(), "SUMS")
		if err := os.WriteFile(path, []byte(test.text), 0o666); err != nil {
			t.Fatal(err)
		}
		err := Verify(dir, path)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		if test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: error is not %q: %v", test.name, test.is, err)
		}
		got := strings.Split(err.Error(), "\n")
		if !slices.EqualFunc(got, test.want, func(got, want string) bool { return strings.HasPrefix(got, path+want) }) {
			t.Errorf("%s: error is\n%v\nwant\n%v", test.name, err, strings.Join(test.want, "\n"))
		}
	}
	if err := Verify(dir, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no checksum file: error is %v", err)
	}
}

func TestCoreutilsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := writeFiles(t, dir, sample)
	slices.Sort(names)
	sums := sumsOf(t, dir, names)
	for tool, ours := range map[string][]byte{"sha256sum": sums.SHA256SUMS(), "sha512sum": sums.SHA512SUMS()} {
		program, err := exec.LookPath(tool)
		if err != nil {
			t.Skip(err)
		}
		path := filepath.Join(t.TempDir(), "SUMS")
		if err := os.WriteFile(path, ours, 0o666); err != nil {
			t.Fatal(err)
		}
		check := exec.Command(program, "--check", "--strict", path)
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s does not accept our file: %v\n%s", tool, err, out)
		}
		make := exec.Command(program, append([]string{"--"}, names...)...)
		make.Dir = dir
		theirs, err := make.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(theirs) != string(ours) {
			t.Errorf("%s writes\n%s\nwe write\n%s", tool, theirs, ours)
		}
	}
}

func TestVerifyFilesChecksOnlyTheNamedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := filepath.Join(dir, "SHA256SUMS")
	text := fmt.Sprintf("%x  good\n%064x  bad\n%064x  missing\n", sha256.Sum256([]byte("x")), 0, 0)
	for name, text := range map[string]string{"SHA256SUMS": text, "good": "x", "bad": "y", "unnamed": "z"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := VerifyFiles(dir, sums, "good"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]error{"bad": ErrDiffers, "missing": fs.ErrNotExist, "unnamed": ErrUnnamed} {
		if err := VerifyFiles(dir, sums, "good", name); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
}
