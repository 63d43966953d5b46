package source

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/archive"
)

// readCommit reads the files of the commit. It reads blobs, because git archive converts line endings, runs filters and obeys attributes,
// as a checkout does.
func (t *Tree) readCommit(ctx context.Context) ([]archive.Entry, error) {
	var blobs strings.Builder
	for _, f := range t.read {
		blobs.WriteString(f.Blob + "\n")
	}
	contents, err := t.repo.Run(ctx, strings.NewReader(blobs.String()), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	entries := make([]archive.Entry, len(t.read))
	for i, f := range t.read {
		e := archive.Entry{Name: f.Name, Mode: f.Mode, Link: f.Link}
		if e.Data, contents, err = cutBlob(contents); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		if e.Link != "" {
			e.Data = nil
		}
		entries[i] = e
	}
	return entries, nil
}

// cutBlob cuts the first blob off the output of git cat-file --batch: a line that ends in the blob's size, the blob, and a
// line feed.
func cutBlob(batch []byte) (blob, rest []byte, err error) {
	head, rest, _ := bytes.Cut(batch, []byte("\n"))
	_, kind, _ := strings.Cut(string(head), " ")
	digits, ok := strings.CutPrefix(kind, "blob ")
	size, err := strconv.Atoi(digits)
	if !ok || err != nil || size < 0 || size >= len(rest) {
		return nil, nil, fmt.Errorf("git cat-file: %q", head)
	}
	return rest[:size:size], rest[size+1:], nil
}
