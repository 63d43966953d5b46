package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	blockSize = 512           // of a tar file
	endSize   = 2 * blockSize // zeros that end a tar file
)

var zeros [endSize]byte

// A member is an entry in its final form.
type member struct {
	name    string
	header  []byte   // one or more whole blocks
	content *content // of a regular file, else nil
	padding int64    // zeros after the content
}

// size returns how many bytes of the tar file the member takes.
func (m *member) size() int64 {
	if m.content == nil {
		return int64(len(m.header))
	}
	return int64(len(m.header)) + m.content.size + m.padding
}

// padding returns the number of zeros that follow a content of the given size.
func padding(size int64) int64 {
	return -size & (blockSize - 1)
}

// layout checks the entries, adds missing directories, and sorts all.
func layout(entries []Entry, t time.Time) ([]member, error) {
	names := make(map[string]bool, len(entries)) // to whether it is a directory
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return nil, fmt.Errorf("pack %q: %w", e.Name, err)
		}
		if e.Last && e.Mode.IsDir() {
			return nil, fmt.Errorf("pack %s: a directory cannot be last", e.Name)
		}
		if _, twice := names[e.Name]; twice {
			return nil, fmt.Errorf("pack %s: name occurs twice", e.Name)
		}
		names[e.Name] = e.Mode.IsDir()
	}
	all := slices.Clone(entries)
	for _, e := range entries {
		for dir := path.Dir(e.Name); dir != "."; dir = path.Dir(dir) {
			isDir, exists := names[dir]
			if exists && !isDir {
				return nil, fmt.Errorf("pack %s: %s is not a directory", e.Name, dir)
			}
			if exists {
				break
			}
			names[dir] = true
			all = append(all, Entry{Name: dir, Mode: fs.ModeDir})
		}
	}
	// A directory's name is a prefix of the names below it, so this puts it before them.
	slices.SortFunc(all, func(a, b Entry) int {
		if a.Last != b.Last {
			if b.Last {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})

	members := make([]member, len(all))
	for i, e := range all {
		m, err := newMember(e, t)
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.Name, err)
		}
		members[i] = m
	}
	return members, nil
}

func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) {
		return errors.New("name is not relative, clean and UTF-8")
	}
	return nil
}

func newMember(e Entry, t time.Time) (member, error) {
	h := tar.Header{Name: e.Name}
	m := member{name: e.Name}
	if !e.Mode.IsRegular() && (e.Data != nil || e.Path != "" || e.Sum != "") {
		return m, errors.New("has a content but is not a regular file")
	}
	if e.Mode.Type() != fs.ModeSymlink && e.Link != "" {
		return m, errors.New("has a target but is not a symbolic link")
	}
	switch e.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, e.Name+"/", 0o755
		if e.Mode&fs.ModeSticky != 0 {
			h.Mode = 0o1777 // a folder like /tmp, which everyone may write to
		}
	case fs.ModeSymlink:
		if e.Link == "" {
			return m, errors.New("symbolic link has no target")
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
	case 0:
		h.Typeflag, h.Mode = tar.TypeReg, 0o644
		if e.Mode&0o100 != 0 { // git keeps only this bit; the rest depends on the umask
			h.Mode = 0o755
		}
		if e.Mode&fs.ModeSetuid != 0 {
			h.Mode |= 0o4000
		}
		c, err := newContent(e)
		if err != nil {
			return m, err
		}
		m.content, m.padding, h.Size = c, padding(c.size), c.size
	default:
		return m, fmt.Errorf("cannot pack a file of type %v", e.Mode.Type())
	}
	var err error
	m.header, err = header(h, t)
	return m, err
}

// newContent looks at the file behind an entry, without reading it.
func newContent(e Entry) (*content, error) {
	if e.Path == "" {
		if e.Sum != "" {
			return nil, errors.New("has a sum but no path")
		}
		return &content{name: e.Name, data: e.Data, size: int64(len(e.Data))}, nil
	}
	if e.Data != nil {
		return nil, errors.New("has both data and a path")
	}
	if raw, err := hex.DecodeString(e.Sum); err != nil || e.Sum != "" && len(raw) != 32 {
		return nil, fmt.Errorf("%q is not a SHA-256", e.Sum)
	}
	info, err := os.Stat(e.Path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", e.Path)
	}
	return &content{
		name: e.Name, path: e.Path, size: info.Size(), modTime: info.ModTime(), sum: strings.ToLower(e.Sum),
	}, nil
}

// header returns the member's header as blocks of the tar file.
func header(h tar.Header, t time.Time) ([]byte, error) {
	h.ModTime = time.Unix(0, 0)
	if !t.IsZero() {
		h.ModTime = time.Unix(t.Unix(), 0)
	}
	var b bytes.Buffer
	// Each header needs its own writer, which would otherwise wait for the content before the next header.
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
