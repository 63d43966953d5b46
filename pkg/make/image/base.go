package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/archive"
)

// staticBase is the base that all other bases stand on.
const staticBase = "static"

// Base reads the layers of a base in the folder of all bases. No name is the empty base. Bases other than static stand on
// static, and hold the files in their folder's rootfs, the links that its links.txt lists, and the files of Debian packages
// if there are any: packages is a tar of these, or "".
func Base(bases, name, packages string) ([]Layer, error) {
	if name == "" {
		return nil, nil
	}
	static, err := Static(bases)
	if err != nil || name == staticBase {
		return []Layer{static}, err
	}
	dir := filepath.Join(bases, name)
	links, err := readLinks(filepath.Join(dir, "links.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("base %s: %w", name, err)
	}
	entries, err := rootfs(filepath.Join(dir, "rootfs"))
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && (packages != "" || len(links) > 0)) {
		return nil, fmt.Errorf("base %s: %w", name, err)
	}
	entries = append(entries, links...)
	if packages != "" {
		unpacked, err := archive.ReadTar(packages)
		if err != nil {
			return nil, fmt.Errorf("base %s: %w", name, err)
		}
		entries = append(entries, unpacked...)
	}
	if err := behindLinks(entries); err != nil {
		return nil, fmt.Errorf("base %s: %w", name, err)
	}
	return []Layer{static, {Entries: entries, Comment: "base " + name}}, nil
}

// readLinks reads a list of symbolic links: on each line a name, an arrow and its target. A program with hundreds of names
// has a list of them instead of hundreds of links in a rootfs.
func readLinks(file string) ([]archive.Entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var links []archive.Entry
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, to, ok := strings.Cut(line, " -> ")
		if !ok || !fs.ValidPath(name) || to == "" {
			return nil, fmt.Errorf("%s:%d: want a line like \"usr/bin/awk -> mawk\"", file, n)
		}
		links = append(links, archive.Entry{Name: name, Mode: fs.ModeSymlink | 0o777, Link: to})
	}
	return links, nil
}

// behindLinks reports a file below a link in the same layer: unpacked, only one of them would be there.
func behindLinks(entries []archive.Entry) error {
	links := map[string]bool{}
	for _, e := range entries {
		if e.Link != "" {
			links[e.Name] = true
		}
	}
	for _, e := range entries {
		for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
			if links[dir] {
				return fmt.Errorf("%s is a file below %s, which is a link", e.Name, dir)
			}
		}
	}
	return nil
}

// Static reads the base for statically linked programs in the folder of all bases: users, name service, certificates and
// folders to write to. Its README.md describes it.
func Static(bases string) (Layer, error) {
	entries, err := rootfs(filepath.Join(bases, staticBase, "rootfs"))
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

// rootfs lists what is below dir as it should be in an image. Git keeps only whether a file is executable, so the rest of its
// mode does not count: it depends on the umask of the user who cloned the repository.
func rootfs(dir string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", dir, err)
		case name == ".":
			return nil
		}
		e, err := entry(filepath.Join(dir, filepath.FromSlash(name)))
		e.Name = name
		entries = append(entries, e)
		return err
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
