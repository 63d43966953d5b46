// Package tarfs reads an uncompressed tar as a file system. It finds members by their offsets, so nothing is unpacked, and several can be
// read at once.
//
// A tar may come from anybody. So it holds files and folders alone, each name once and below its root, and it ends where it says that it
// ends. Libraries that open tars as file systems are made for tars that are trusted: they follow links, let the last of two members
// with one name win, or read all of it into memory.
//
// What must never be in here: which files a tar should have.
package tarfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// What is wrong with a tar.
var (
	ErrShort  = errors.New("it is cut short")
	ErrLonger = errors.New("it has something after its end")
	ErrUnsafe = errors.New("is not a regular file or folder below the root, or its name occurs twice")
)

const (
	block = 512
	end   = 2 * block // zeros at the end
)

// most is how many members are read.
const most = 200_000

// An FS is the content of a tar. It is an fs.ReadDirFS.
type FS struct {
	file    *os.File
	members map[string]member
}

type member struct {
	offset int64
	info   fs.FileInfo
}

// Open reads the names in a tar. The caller closes it. The error is ErrShort, ErrLonger or ErrUnsafe if that is why it is refused.
func Open(name string) (*FS, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	t := &FS{f, map[string]member{}}
	if err := t.scan(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// scan finds the members. A tar.Reader reads headers alone from a file, and seeks over contents.
func (t *FS) scan() error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	var after int64 // the last content
	for r := tar.NewReader(t.file); ; {
		h, err := r.Next()
		switch {
		case err == io.EOF && info.Size() < after+end:
			return ErrShort
		case err == io.EOF && info.Size() > after+end:
			return ErrLonger
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return ErrShort
		case err != nil:
			return err
		case len(t.members) == most:
			return fmt.Errorf("it has more than %d members", most)
		}
		at, err := t.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		after = at + (h.Size+block-1)&^(block-1)
		name := strings.TrimSuffix(h.Name, "/")
		_, twice := t.members[name]
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) || twice ||
			h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir || h.Typeflag == tar.TypeDir && h.Size > 0 {
			return fmt.Errorf("%q %w", h.Name, ErrUnsafe)
		}
		t.members[name] = member{at, h.FileInfo()}
	}
}

// Close closes the tar. Files that were opened cannot be read any more.
func (t *FS) Close() error { return t.file.Close() }

// Files lists the names of all files.
func (t *FS) Files() []string {
	var names []string
	for name, m := range t.members {
		if m.info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Open opens a file. Folders are not opened: ReadDir lists them.
func (t *FS) Open(name string) (fs.File, error) {
	m, ok := t.members[name]
	if !ok || !m.info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return file{io.NewSectionReader(t.file, m.offset, m.info.Size()), m.info}, nil
}

// ReadDir lists what is in a folder, by name.
func (t *FS) ReadDir(dir string) ([]fs.DirEntry, error) {
	found := map[string]fs.DirEntry{}
	for name, m := range t.members {
		if path.Dir(name) == dir {
			found[name] = fs.FileInfoToDirEntry(m.info)
		}
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		entries = append(entries, found[name])
	}
	return entries, nil
}

type file struct {
	*io.SectionReader
	info fs.FileInfo
}

func (f file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f file) Close() error               { return nil }
