package image

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/archive"
)

// Base reads the base called name, as a catalog's images name it, in the repository at root.
func Base(root, name string) (Layer, error) {
	if name == "static" {
		return Static(root)
	}
	return Layer{}, fmt.Errorf("base %s: no such base (there is: static)", name)
}

// Static is the base for statically linked programs: users, name service, certificates and folders to write to.
// images/static/README.md of the repository at root describes it.
func Static(root string) (Layer, error) {
	entries, err := rootfs(filepath.Join(root, "images", "static", "rootfs"))
	if err != nil {
		return Layer{}, fmt.Errorf("base static: %w", err)
	}
	roots, err := certificates()
	if err != nil {
		return Layer{}, fmt.Errorf("base static: %w", err)
	}
	entries = append(entries,
		archive.Entry{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: roots},
		archive.Entry{Name: "home/nonroot", Mode: fs.ModeDir | 0o755},
		archive.Entry{Name: "root", Mode: fs.ModeDir | 0o755},
		archive.Entry{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	)
	return Layer{Entries: entries, Comment: "base static: users, certificates, /tmp"}, nil
}

// rootfs lists what is below dir as it should be in an image. Of the modes only what git keeps counts: whether a file
// is executable. The rest is the umask of whoever cloned the repository.
func rootfs(dir string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		e, err := entry(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		e.Name = filepath.ToSlash(rel)
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

func entry(path string) (archive.Entry, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return archive.Entry{}, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return archive.Entry{Mode: fs.ModeDir | 0o755}, nil
	case mode.IsRegular() && mode&0o100 != 0:
		return archive.Entry{Mode: 0o755, Path: path}, nil
	case mode.IsRegular():
		return archive.Entry{Mode: 0o644, Path: path}, nil
	case mode&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		return archive.Entry{Mode: fs.ModeSymlink | 0o777, Link: link}, err
	default:
		return archive.Entry{}, fmt.Errorf("read %s: neither a file, a folder nor a link", path)
	}
}
