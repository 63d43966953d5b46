package archive

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTarFilesAreCutAtTheirMembers(t *testing.T) {
	t.Parallel()
	a, b := prose(1, 200_000), prose(2, minSegment)
	small := file("small", prose(3, 40_000))
	inner := tarred(t, file("a", a), small)
	gap := tarred(t, file("1", small.Data), file("2", small.Data), file("3", a))
	damaged := slices.Clone(inner)
	damaged[512+200_192+30]++ // in the header of small
	for _, test := range []struct {
		name    string
		content []byte
		want    [][]byte
	}{
		{"no tar file", a, [][]byte{a}},
		{"members", tarred(t, file("a", a), file("b", b)), [][]byte{a, b}},
		{"small members only", gap[:3*512+2*40_448], [][]byte{gap[:3*512+2*40_448]}},
		{"small", tarred(t, small), nil},
		{"tar in tar", tarred(t, file("b", b), file("layer.tar.gz", inner)), [][]byte{b, a}},
		{"long names", tarred(t, file(strings.Repeat("long", 90), a)), [][]byte{a}},
		{"after a link", tarred(t, file("x", a), Entry{Name: "l", Mode: fs.ModeSymlink, Link: "x"}), [][]byte{a}},
		{"bytes after the end", slices.Concat(inner, b), [][]byte{a, slices.Concat(inner[512+200_000:], b)}},
		{"large gap", gap, [][]byte{gap[:3*512+2*40_448], a}},
		{"cut", inner[:150_000], [][]byte{inner[:150_000]}},
		{"damaged header", damaged, [][]byte{damaged}},
		{"damaged inner", tarred(t, file("b", b), file("l", inner[:150_000])), [][]byte{b, inner[:150_000]}},
	} {
		var got [][]byte
		for _, s := range cut(bytes.NewReader(test.content), int64(len(test.content))) {
			got = append(got, test.content[s.Off:s.end()])
		}
		if !slices.EqualFunc(got, test.want, bytes.Equal) {
			t.Errorf("%s: cut into %v, want %v", test.name, lengths(got), lengths(test.want))
		}
	}
}

func lengths(parts [][]byte) (all []int) {
	for _, p := range parts {
		all = append(all, len(p))
	}
	return all
}

func TestSplitIsTheSameFromTheCache(t *testing.T) {
	t.Parallel()
	con, err := newContent(binaryAndImage(t, t.TempDir(), prose(1, minSegment))[1])
	if err != nil {
		t.Fatal(err)
	}
	c, err := openCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cold, err := c.splitContent(t.Context(), con)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.split(con.sum, con.size); !ok {
		t.Error("not in the cache")
	}
	warm, err := c.splitContent(t.Context(), con)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cold, warm); diff != "" {
		t.Error(diff)
	}
}

// Whatever looks like a tar file at its start: it is cut somewhere or nowhere, and all of it is packed.
func FuzzOddTarFiles(f *testing.F) {
	var image bytes.Buffer
	if err := Tar(&image, []Entry{file("a", prose(1, 70_000)), file("b", prose(2, 100))}, testTime); err != nil {
		f.Fatal(err)
	}
	f.Add(image.Bytes(), 124, []byte("77777777777"))
	f.Add(image.Bytes(), 156, []byte("S"))
	f.Add(image.Bytes(), 70_656+156, []byte("L"))
	f.Add(image.Bytes()[:66_000], 0, []byte{})
	f.Fuzz(func(t *testing.T, p []byte, at int, patch []byte) {
		p = slices.Clone(p)
		if at >= 0 && at < len(p) {
			copy(p[at:], patch)
		}
		if len(p) < minSegment {
			p = append(p, make([]byte, minSegment)...)
		}
		entries := []Entry{file("odd.tar", p)}
		if !bytes.Equal(gunzip(t, packed(t, &Packer{Time: testTime}, entries)), tarred(t, entries...)) {
			t.Error("other content")
		}
	})
}
