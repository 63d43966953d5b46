package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway.build/pkg/mechanism/checksum"
)

// BlobKey returns the key of something that is not the result of an action: a digest of what identifies it.
func BlobKey(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// errBlob says that a cache has other files under a key than those that were asked for.
var errBlob = errors.New("the cache has other files under this key")

// FetchFiles fetches what StoreFiles has stored under a key into a folder. Names are those of all its files. It reports whether the cache
// has them.
func FetchFiles(ctx context.Context, c Cache, key, dir string, names ...string) (bool, error) {
	r := c.LookupBlob(ctx, key)
	if r == nil {
		return false, nil
	}
	entries := map[string]Entry{}
	for _, e := range r.Entries {
		entries[e.Path] = e
	}
	var contents []Content
	for _, name := range names {
		e, ok := entries[name]
		if !ok || len(r.Entries) != len(names) {
			return false, fmt.Errorf("%s: %w", name, errBlob)
		}
		contents = append(contents, Content{SHA256: e.SHA256, Size: e.Size, File: filepath.Join(dir, name)})
	}
	return true, c.Fetch(ctx, contents)
}

// StoreFiles stores files under a key, unless the cache has something under it. Files has their paths on this machine, by name.
func StoreFiles(ctx context.Context, c Cache, key string, files map[string]string) error {
	if c.LookupBlob(ctx, key) != nil {
		return nil
	}
	r := &Result{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		st, err := os.Stat(files[name])
		if err != nil {
			return err
		}
		sum, err := checksum.File(files[name])
		if err != nil {
			return err
		}
		r.Entries = append(r.Entries, Entry{Path: name, Kind: RegularFile, SHA256: sum, Size: st.Size()})
	}
	return c.Store(ctx, key, r, func(name string) (io.ReadCloser, error) { return os.Open(files[name]) })
}
