package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
)

// unpack unpacks a tar file, compressed or not, into a folder: files, folders and symbolic links.
func unpack(name, dir string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	content := io.Reader(f)
	if path.Ext(name) == ".gz" {
		if content, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // a name that leads out of it is an error
	if err != nil {
		return err
	}
	defer root.Close()
	for members := tar.NewReader(content); ; {
		h, err := members.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = put(root, h, members)
		}
		if err != nil {
			return err
		}
	}
}

func put(root *os.Root, h *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(path.Clean(h.Name), 0o755)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, h.Name)
	case tar.TypeReg:
	default:
		return fmt.Errorf("%s: neither a file, a folder nor a symbolic link", h.Name)
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	return f.Close()
}
