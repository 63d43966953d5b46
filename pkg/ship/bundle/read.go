package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"runtime"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/mechanism/tarfs"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/verify"
)

// A Bundle is a bundle that was opened. Nothing in it was verified.
type Bundle struct {
	Release *release.Release
	Request Request
	Images  []Image
	Files   fs.FS // of the release: release.json and others beside it

	name        string
	description []byte // content of release.json
	members     *tarfs.FS
}

// Is reports whether a file begins as a bundle does.
func Is(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil || h.Typeflag != tar.TypeDir {
			return err == nil && h.Name == requestFile
		}
	}
}

// Open opens a bundle. The caller closes it.
func Open(name string) (*Bundle, error) {
	members, err := tarfs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("not a whole bundle: %w: copy or make it again", err)
	}
	b := &Bundle{name: name, members: members}
	if err := b.open(); err != nil {
		members.Close()
		return nil, fmt.Errorf("%s is no bundle: %w", name, err)
	}
	return b, nil
}

func (b *Bundle) open() (err error) {
	data, err := readSmall(b.members, requestFile, maxSmall)
	if err != nil {
		return err
	}
	if b.Request, err = parse(data); err != nil {
		return fmt.Errorf("%s: %w", requestFile, err)
	}
	if b.Files, err = fs.Sub(b.members, folder); err != nil {
		return err
	}
	if b.description, err = readSmall(b.Files, release.File, maxSmall); err != nil {
		return err
	}
	if b.Release, err = release.Unmarshal(b.description); err != nil {
		return err
	}
	// Nobody has signed the request: it must be one that bundles are made for.
	asked, err := Of(b.Release, b.Request.Platform, b.Request.Sets, b.Request.Tarballs)
	if err == nil {
		err = asked.complete(b.Release)
	}
	if err == nil && !reflect.DeepEqual(asked, b.Request) {
		err = fmt.Errorf("it is of %s, and %s of %s", b.Request.Version, release.File, asked.Version)
	}
	if err != nil {
		return fmt.Errorf("%s: %v", requestFile, err) // not wrapped: what is wrong in a file is no mistake in a command
	}
	b.Images = b.Request.images(b.Release)
	return nil
}

// String returns the name of the bundle's file.
func (b *Bundle) String() string { return b.name }

// Close closes the bundle.
func (b *Bundle) Close() error { return b.members.Close() }

// Summary says what the bundle has.
func (b *Bundle) Summary() *Summary { return b.Request.summary(b.Release, b.name) }

// Blob opens a blob.
func (b *Bundle) Blob(hash v1.Hash) (io.ReadCloser, error) {
	return b.members.Open(path.Join(blobs, hash.Hex))
}

// Referrers returns what refers to the images.
func (b *Bundle) Referrers() ([]sign.Referrer, error) {
	statements, err := b.Request.statements(b.Release, b.description, b.Files)
	if err != nil {
		return nil, err
	}
	return sign.Referrers(b.Release, b.Files, statements)
}

// Verify checks all that the bundle has, and that it has all that it should have and nothing else. It returns an error if it cannot tell
// what that is.
func (b *Bundle) Verify(ctx context.Context, want verify.Want) (*verify.Report, error) {
	expected, err := b.Request.contents(b.Release, b.description, source{b.Files, b.members})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.name, err)
	}
	known := map[string]bool{}
	for _, f := range expected {
		known[f.name] = true
	}
	var found []verify.File
	for _, name := range b.members.Files() {
		if !known[name] {
			found = append(found, verify.File{Path: name, Status: verify.Stranger})
		}
	}
	var mu sync.Mutex
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range expected {
		if f.signed {
			continue // see below
		}
		g.Go(func() error {
			status, err := b.check(within, f)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, verify.File{Path: f.name, Status: status})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return verify.Part(ctx, b.Files, b.name, folder, b.Request.about(b.Release), found, want)
}

// check compares a file with what it should be.
func (b *Bundle) check(ctx context.Context, f file) (verify.Status, error) {
	in, err := b.members.Open(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return verify.Missing, nil
	}
	if err != nil {
		return "", err
	}
	defer in.Close()
	want := f.sum
	if want == "" {
		d, _, _ := checksum.Of(bytes.NewReader(f.data)) // which cannot fail
		want = d.SHA256
	}
	sum, _, err := checksum.SHA256(ctxio.Reader(ctx, in))
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s of %s: %w", f.name, b.name, err)
	case sum != want:
		return verify.Changed, nil
	}
	return verify.OK, nil
}
