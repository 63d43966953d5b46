package inputs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
	"golang.org/x/mod/sumdb/dirhash"
)

// level of the compressor: 6 makes the modules of a release 4 % smaller in 1.2 times the time.
const level = 4

// repack writes a module's zip file again, so that it depends on names and contents alone, and returns the
// module's sum ("h1:…").
func repack(ctx context.Context, from, to string) (sum string, err error) {
	in, err := zip.OpenReader(from)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	b := bufio.NewWriterSize(out, 1<<20)
	w := zip.NewWriter(b)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, level) })

	names := make([]string, len(in.File))
	files := make(map[string]*zip.File, len(in.File))
	for i, f := range in.File {
		names[i], files[f.Name] = f.Name, f
	}
	if len(files) < len(names) {
		return "", fmt.Errorf("%s: two files have one name", from)
	}
	// The sum reads the files one after another, in the order of their names. What it reads is written on the way.
	sum, err = dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := files[name].Open()
		if err != nil {
			return nil, err
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			_ = r.Close()
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r, to), r}, nil
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return sum, b.Flush()
}
