package checksum

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/needs"
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
		if !errors.Is(err, syscall.ENOSPC) || written > int64(room+3*blockSize) {
			t.Errorf("room for %d: %d written, %v", room, written, err)
		}
		if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d: the digest says %v", room, err)
		}
	}
	d := NewDigester(&full{3 * blockSize})
	if _, err := d.Write(make([]byte, 6*blockSize)); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if _, err := d.State(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the state of digests that may lack something: %v", err)
	}
	if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the digest says %v", err)
	}
	d = NewDigester(&full{1})
	if n, err := d.Write([]byte("two bytes")); n != 9 || err != nil {
		t.Errorf("%d, %v", n, err) // not passed on yet
	}
	if _, err := d.Digest(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the digest says %v", err)
	}
}

// What was digested before need only be passed on.
func TestDigesterResumes(t *testing.T) {
	t.Parallel()
	data := []byte(sample["a/b/c.tar.gz"])
	for _, at := range []int{0, 1, blockSize, 3*blockSize + 5, len(data)} {
		var first, second bytes.Buffer
		one := NewDigester(&first)
		_, err1 := one.Write(data[:at])
		state, err2 := one.State()
		_, err3 := one.Write(data[at:])
		want, err4 := one.Digest()

		two := NewDigester(&second)
		_, err5 := two.Write([]byte{})
		var errs []error
		for piece := range slices.Chunk(data[:at], 1000) {
			_, err := two.Pass(piece)
			errs = append(errs, err)
		}
		err6 := two.Resume(state)
		_, err7 := two.Write(data[at:])
		got, err8 := two.Digest()
		if err := errors.Join(append(errs, err1, err2, err3, err4, err5, err6, err7, err8)...); err != nil {
			t.Fatal(err)
		}
		if got != want || !bytes.Equal(second.Bytes(), data) {
			t.Errorf("%d bytes were passed on: %v, want %v", at, got, want)
		}
	}
}

func TestDigesterResumesFromItsOwnStatesAlone(t *testing.T) {
	t.Parallel()
	other := NewDigester(io.Discard)
	_, err1 := other.Write([]byte("other"))
	whole, err2 := other.State()
	_, err3 := other.Digest()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*state){
		"no SHA-512":    func(s *state) { s.SHA512 = nil },
		"a cut SHA-512": func(s *state) { s.SHA512 = s.SHA512[:40] },
		"no SHA-256":    func(s *state) { s.SHA256 = nil },
		"other code":    func(s *state) { s.Recipe = "other" },
		"nothing":       func(s *state) { *s = state{} },
	} {
		var s state
		if err := json.Unmarshal(whole, &s); err != nil {
			t.Fatal(err)
		}
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		d := NewDigester(io.Discard)
		_, err1 := d.Write([]byte("one, "))
		if d.Resume(text) == nil {
			t.Errorf("it resumes from a state with %s", name)
		}
		_, err2 := d.Write([]byte("two"))
		got, err3 := d.Digest()
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		want := Digest{fmt.Sprintf("%x", sha256.Sum256([]byte("one, two"))), fmt.Sprintf("%x", sha512.Sum512([]byte("one, two")))}
		if got != want {
			t.Errorf("after a state with %s: %v, want %v", name, got, want)
		}
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
		if got, size, err := Of(strings.NewReader(text)); got != want || size != int64(len(text)) || err != nil {
			t.Errorf("%q: %v of %d bytes, error %v", name, got, size, err)
		}
		if got, err := File(filepath.Join(dir, name)); got != want.SHA256 || err != nil {
			t.Errorf("%q: %s, error %v", name, got, err)
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

func TestCoreutilsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := writeFiles(t, dir, sample)
	slices.Sort(names)
	sums := sumsOf(t, dir, names)
	for tool, ours := range map[string][]byte{"sha256sum": sums.SHA256SUMS(), "sha512sum": sums.SHA512SUMS()} {
		program := needs.Program(t, tool)
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

func TestWrittenSumsAreReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := sumsOf(t, dir, writeFiles(t, dir, sample))
	want := map[string]string{}
	for name, d := range sums {
		want[name] = d.SHA256
	}
	got, err := Parse(sums.SHA256SUMS())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	long, err := Parse(sums.SHA512SUMS())
	if len(long) != len(sums) || err != nil {
		t.Errorf("%d sums of SHA-512, error %v", len(long), err)
	}
	sum := strings.Repeat("0f", 32)
	for _, text := range []string{
		sum[1:] + "  a\n", sum + " a\n", sum + "  a\n\n" + sum + "  b\n", sum + "  a\n" + sum + "  a\n", strings.Repeat("x", 64) + "  a\n",
	} {
		if got, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(strings.Repeat("0a", 32) + "  file\n\\" + strings.Repeat("0a", 32) + "  odd\\nname\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, err := Parse(data)
		if err != nil {
			return
		}
		all := Sums{}
		for name, sum := range sums {
			all[name] = Digest{SHA256: sum}
		}
		again, err := Parse(all.SHA256SUMS())
		if err != nil || len(again) != len(sums) {
			t.Errorf("%d sums were read, and %d of what is written of them: %v", len(sums), len(again), err)
		}
	})
}
