package objects

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
)

// A Binary is one whose objects are to be stored.
type Binary struct {
	Key      string
	BuildIDs []string // of its packages, as `go list -export` says them
}

// decodeID returns the beginning of an action from the first part of a build ID, in hexadecimal.
func decodeID(id string) (string, error) {
	const bits = 120
	sum, err := base64.RawURLEncoding.DecodeString(id)
	if err == nil && len(sum) != bits/8 {
		err = errors.New("another length")
	}
	if err != nil {
		return "", fmt.Errorf("build ID %q: %w", id, err)
	}
	return hex.EncodeToString(sum), nil
}

// Missing returns the keys for which the cache has no list.
func (s *Share) Missing(ctx context.Context, keys []string) []string {
	var missing []string
	for _, key := range keys {
		if s.Cache.LookupBlob(ctx, key) == nil {
			missing = append(missing, key)
		}
	}
	return missing
}

// Store uploads the objects of binaries from a cache of Go. It leaves out packages that are missing there, are too large, or made the
// compiler print something. It compares the bytes with the digest in the cache of Go, since the go command does not, and leaves out others.
func (s *Share) Store(ctx context.Context, dir string, binaries []Binary) error {
	f := &finder{dir: dir, known: map[string][]string{}}
	lists := make([][]object, len(binaries))
	found := map[string]object{} // by build ID
	for i, b := range binaries {
		for _, id := range b.BuildIDs {
			o, ok := found[id]
			if !ok {
				if o, ok = f.find(id); !ok {
					continue
				}
				found[id] = o
			}
			lists[i] = append(lists[i], o)
		}
	}
	packed, err := s.pack(ctx, dir, found)
	if err != nil {
		return err
	}
	for i, b := range binaries {
		r := &action.Result{}
		files := map[string]string{} // by path in the result
		for _, o := range lists[i] {
			p, ok := packed[o.output]
			if !ok {
				continue
			}
			o.blob, o.packed = p.blob, p.packed
			e := o.entry()
			r.Entries, files[e.Path] = append(r.Entries, e), p.file
		}
		if err := s.Cache.Store(ctx, b.Key, r, func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }); err != nil {
			return err
		}
	}
	return nil
}

// A packing is a file with the compressed bytes of an output.
type packing struct {
	file, blob string
	packed     int64
}

// pack compresses the outputs of objects. It leaves out those with a wrong digest.
func (s *Share) pack(ctx context.Context, dir string, found map[string]object) (map[digest]packing, error) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	outputs := map[digest]bool{}
	for _, o := range found {
		outputs[o.output] = true
	}
	packed := map[digest]packing{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for output := range outputs {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			data, err := os.ReadFile(outputFile(dir, output))
			if err != nil || sha256.Sum256(data) != output {
				return err
			}
			data = z.EncodeAll(data, nil)
			if len(data) > maxPacked {
				return nil
			}
			sum := sha256.Sum256(data)
			p := packing{filepath.Join(s.Scratch, hex.EncodeToString(output[:])), hex.EncodeToString(sum[:]), int64(len(data))}
			mu.Lock()
			packed[output] = p
			mu.Unlock()
			return os.WriteFile(p.file, data, 0o666)
		})
	}
	return packed, g.Wait()
}
