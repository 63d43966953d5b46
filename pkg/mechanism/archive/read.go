package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// ReadTar reads what Tar wrote into memory: the files and links, without folders that only lead to them.
func ReadTar(name string) ([]Entry, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []Entry
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		e := Entry{Name: path.Clean(h.Name), Mode: h.FileInfo().Mode(), Link: h.Linkname}
		if h.Typeflag == tar.TypeReg {
			if e.Data, err = io.ReadAll(r); err != nil {
				return nil, fmt.Errorf("read %s: %s: %w", name, h.Name, err)
			}
		}
		entries = append(entries, e)
	}
}
