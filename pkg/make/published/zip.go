package published

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"slipway.build/pkg/tree/module"
)

// A zipFile is the zip file of a module.
type zipFile struct {
	*zip.ReadCloser
	prefix string // of the names in it
}

// openZip opens the zip file of a module if it has the module's sum.
func openZip(name string, of module.Pinned) (*zipFile, error) {
	sum, err := dirhash.HashZip(name, dirhash.Hash1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if sum != of.Sum {
		return nil, fmt.Errorf("%s has the sum %s, want %s", name, sum, of.Sum)
	}
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &zipFile{r, of.String() + "/"}, nil
}

// writeAs writes the zip file of another version of the module, and returns its sum. It compresses everything again, since proxies pack the
// same module in different ways.
func (z *zipFile) writeAs(ctx context.Context, name string, as module.Version, goMod []byte) (sum string, err error) {
	files := []modzip.File{file{
		"go.mod", &zip.FileHeader{Name: "go.mod", UncompressedSize64: uint64(len(goMod))},
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(goMod)), nil },
	}}
	for _, f := range z.File {
		path := strings.TrimPrefix(f.Name, z.prefix)
		if path != "go.mod" && !strings.HasSuffix(path, "/") {
			files = append(files, file{path, &f.FileHeader, f.Open})
		}
	}
	slices.SortFunc(files, func(a, b modzip.File) int { return strings.Compare(a.Path(), b.Path()) })
	out, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer out.Close()
	if err := modzip.Create(writer{ctx, out}, gomod.Version(as), files); err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	return dirhash.HashZip(name, dirhash.Hash1)
}

// A file is a file of a module.
type file struct {
	path   string
	header *zip.FileHeader
	open   func() (io.ReadCloser, error)
}

func (f file) Path() string                 { return f.path }
func (f file) Lstat() (os.FileInfo, error)  { return f.header.FileInfo(), nil }
func (f file) Open() (io.ReadCloser, error) { return f.open() }

// A writer stops when a context ends.
type writer struct {
	ctx context.Context
	to  io.Writer
}

func (w writer) Write(data []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(data)
}
