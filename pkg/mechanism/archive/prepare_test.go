package archive

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPreparedContentIsNotCompressedAgain(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	content := prose(1, minSegment+1000)
	entries := []Entry{{Name: "binary", Path: writeFile(t, filepath.Join(dir, "binary"), content)}}
	p := &Packer{Cache: cache}
	if err := p.Prepare(t.Context(), entries[0].Path); err != nil {
		t.Fatal(err)
	}
	forms := cached(t, cache, packedExt)
	if len(forms) != 1 {
		t.Fatalf("cache holds %v, want one compressed form", forms)
	}
	before, err := os.Stat(forms[0])
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // a form made again would have another time
	if !bytes.Equal(packed(t, p, entries), packed(t, &Packer{}, entries)) {
		t.Error("other bytes than without preparing")
	}
	after, err := os.Stat(forms[0])
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Error("the compressed form was made again", err)
	}
}

func TestPrepareKeepsNothingOfSmallFilesAndReportsMissingOnes(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	p := &Packer{Cache: cache}
	if err := p.Prepare(t.Context(), writeFile(t, filepath.Join(dir, "small"), []byte("x"))); err != nil {
		t.Error(err)
	}
	if forms := cached(t, cache, packedExt); len(forms) != 0 {
		t.Errorf("cache holds %v", forms)
	}
	if err := p.Prepare(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	large := writeFile(t, filepath.Join(dir, "large"), prose(2, 3*minSegment))
	if err := p.Prepare(ctx, large); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: error is %v", err)
	}
}
