package source

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"slipway.build/pkg/mechanism/archive"
)

// Sum names the content: equal sums, equal Entries. That of a clean git work tree is its ID, and costs nothing; in all others every
// file is read.
func (t *Tree) Sum(ctx context.Context) (string, error) {
	if t.ID != "" {
		return t.ID, nil
	}
	entries, err := t.Entries(ctx)
	if err != nil {
		return "", err
	}
	all := sha256.New()
	for _, e := range entries {
		one, err := sumOf(e)
		if err != nil {
			return "", fmt.Errorf("read sources %s: %w", t.Root, err)
		}
		_, _ = fmt.Fprintf(all, "%q %v %q %x\n", e.Name, e.Mode, e.Link, one) // a hash takes everything
	}
	return fmt.Sprintf("%x", all.Sum(nil)), nil
}

func sumOf(e archive.Entry) ([]byte, error) {
	h := sha256.New()
	if e.Path == "" {
		return h.Sum(nil), nil // a link
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
