package rpm

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/archive"
)

// A file is a file of a package as headers and cpio have it.
type file struct {
	archive.Entry
	mode   uint16
	size   int64
	digest string // SHA-256 of a regular file, in hex
}

// Bits of modes.
const (
	folderBits = 0o040000
	fileBits   = 0o100000
	linkBits   = 0o120000
)

// files returns the files of a package by name. Of the permissions, only an owner's right to execute counts, as in package archive.
func files(entries []archive.Entry) ([]file, error) {
	var all []file
	for _, e := range entries {
		f := file{Entry: e}
		switch e.Mode.Type() {
		case fs.ModeDir:
			f.mode = folderBits | 0o755
		case fs.ModeSymlink:
			f.mode, f.size = linkBits|0o777, int64(len(e.Link))
		case 0:
			f.mode, f.size = fileBits|0o644, int64(len(e.Data))
			if e.Mode&0o100 != 0 {
				f.mode = fileBits | 0o755
			}
			if e.Path != "" {
				info, err := os.Stat(e.Path)
				if err != nil {
					return nil, err
				}
				f.size = info.Size()
			}
			var err error
			if f.digest, err = e.SHA256(); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("pack %s: cannot pack a file of type %v", e.Name, e.Mode.Type())
		}
		if !fs.ValidPath(e.Name) || e.Name == "." {
			return nil, fmt.Errorf("pack %q: name is not relative and clean", e.Name)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("pack %s: name occurs twice", all[i].Name)
		}
	}
	return all, nil
}

// payload returns the cpio archive of some files, in the form that its manual calls newc, and its size in bytes.
func payload(files []file, at time.Time) (pieces []archive.Piece, size int64) {
	before := int64(0) // zeros after the content before
	add := func(inode int, f file) {
		links := 1
		if f.mode&folderBits != 0 && f.mode&fileBits == 0 {
			links = 2
		}
		var b strings.Builder
		b.WriteString(strings.Repeat("\x00", int(before)) + "070701")
		for _, v := range []int64{int64(inode), int64(f.mode), 0, 0, int64(links), at.Unix(), f.size, 0, 0, 0, 0,
			int64(len(f.Name) + 1), 0} {
			fmt.Fprintf(&b, "%08x", v)
		}
		b.WriteString(f.Name + "\x00" + strings.Repeat("\x00", int(fill(110+int64(len(f.Name))+1))))
		p := archive.Piece{Data: []byte(b.String()), Path: f.Path, Sum: f.Sum}
		switch {
		case f.Path != "":
			size += f.size
		case f.Link != "":
			p.Data = append(p.Data, f.Link...)
		default:
			p.Data = append(p.Data, f.Data...)
		}
		size += int64(len(p.Data))
		pieces, before = append(pieces, p), fill(f.size)
	}
	for i, f := range files {
		f.Name = "./" + f.Name
		add(i+1, f)
	}
	add(0, file{Entry: archive.Entry{Name: "TRAILER!!!"}})
	return pieces, size
}

// fill returns how many zeros follow, up to the next multiple of 4.
func fill(size int64) int64 { return -size & 3 }
