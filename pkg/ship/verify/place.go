package verify

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/ctxio"
	"slipway.build/pkg/ship/sign"
)

// A place has the files of a release.
type place interface {
	fmt.Stringer
	name(file string) string // for people

	// open opens a file, and returns its size in bytes, or -1 if that is not known. The error is fs.ErrNotExist if there is none, and
	// sign.ErrIrregular if it is no regular file.
	open(ctx context.Context, file string) (io.ReadCloser, int64, error)
}

// A folder is a place on this machine.
type folder string

func (f folder) String() string          { return string(f) }
func (f folder) name(file string) string { return filepath.Join(string(f), filepath.FromSlash(file)) }

func (f folder) open(_ context.Context, file string) (io.ReadCloser, int64, error) {
	name := f.name(file)
	info, err := os.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: %w", name, sign.ErrIrregular)
	}
	opened, err := os.Open(name)
	return opened, info.Size(), err
}

// A part is a place with some of the files of a release.
type part struct {
	files fs.FS
	as    string // for people
}

func (p part) String() string          { return p.as }
func (p part) name(file string) string { return p.as + ": " + file }

func (p part) open(_ context.Context, file string) (io.ReadCloser, int64, error) {
	f, err := p.files.Open(file)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	return f, info.Size(), err
}

// listed returns the files of a place, or nil if it does not say which there are.
func listed(at place) fs.FS {
	switch at := at.(type) {
	case folder:
		return os.DirFS(string(at))
	case part:
		return at.files
	}
	return nil
}

// maxDescription is the size, in bytes, of the largest file that is read into memory. All of Kubernetes' platforms take a tenth.
const maxDescription = 32 << 20

// readSmall reads a file that somebody else may have put there.
func readSmall(ctx context.Context, at place, file string, limit int64) ([]byte, error) {
	f, _, err := at.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(ctxio.Reader(ctx, f), limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: %w", at.name(file), sign.ErrIrregular)
	}
	return data, err
}
