//go:build !windows

package statcache

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lstat and Stat bypass package os: a no-op asks for thousands of files, and most of the time would go into os.FileInfo. Their errors do
// not name the file.

// Lstat returns the status of a file, or of a symbolic link itself.
func Lstat(name string) (Status, error) { return ask(unix.Lstat, name) }

// Stat returns the status of a file, or of the one that a symbolic link leads to.
func Stat(name string) (Status, error) { return ask(unix.Stat, name) }

// A Folder is an open folder, whose files are asked for by their names in it.
type Folder struct{ *os.File }

// Open opens a folder. The caller closes it.
func Open(name string) (Folder, error) {
	f, err := os.Open(name)
	return Folder{f}, err
}

// Stat returns the status of a file in the folder, or of the one that a symbolic link leads to.
func (f Folder) Stat(name string) (Status, error) {
	at := int(f.Fd())
	return ask(func(name string, st *unix.Stat_t) error { return unix.Fstatat(at, name, st, 0) }, name)
}

func ask(call func(string, *unix.Stat_t) error, name string) (Status, error) {
	var st unix.Stat_t
	err := call(name, &st)
	for err == unix.EINTR {
		err = call(name, &st)
	}
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Kind:  Other,
		Size:  st.Size,
		Mtime: st.Mtim.Nano(),
		Ctime: st.Ctim.Nano(),
		Inode: uint64(st.Ino),
		Mode:  uint32(st.Mode),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind = File
		if st.Mode&unix.S_IXUSR != 0 {
			s.Kind = Executable
		}
	case unix.S_IFDIR:
		s.Kind = Directory
	case unix.S_IFLNK:
		s.Kind = Symlink
	}
	return s, nil
}
