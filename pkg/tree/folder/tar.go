package folder

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
)

// Members reads the files and symbolic links in a tar of sources, but those that are never sources.
func Members(ctx context.Context, from io.Reader) ([]File, error) {
	var files []File
	for r := tar.NewReader(from); ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		f := File{Name: path.Clean(h.Name), Mode: 0o644}
		switch {
		case h.Typeflag == tar.TypeSymlink:
			f.Mode, f.Link = fs.ModeSymlink|0o777, h.Linkname
		case h.Typeflag != tar.TypeReg:
			continue
		case h.Mode&0o100 != 0:
			f.Mode = 0o755
		}
		if Excluded(f.Name, f.Mode) {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return nil, err
		}
		f.SHA256 = hex.EncodeToString(sum.Sum(nil))
		files = append(files, f)
	}
}
