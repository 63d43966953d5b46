//go:build !windows

package action

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for err == unix.EINTR {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// replaceLarge renames fresh to final, which is a large file. Its content is freed beside other work: that of a release's tarballs takes 0.4 s.
func replaceLarge(final, fresh string) error {
	if old, err := os.Open(final); err == nil {
		defer func() { go func() { _ = old.Close() }() }()
	}
	if exchange(final, fresh) != nil { // not every file system can
		return os.Rename(fresh, final)
	}
	return os.Remove(fresh)
}

// lstat and stat bypass package os: a no-op asks for a thousand files, and most of the time would go into os.FileInfo.

func lstat(abs string) (status, error) { return ask(unix.Lstat, abs) }

func stat(abs string) (status, error) { return ask(unix.Stat, abs) }

func ask(call func(string, *unix.Stat_t) error, abs string) (status, error) {
	var st unix.Stat_t
	err := call(abs, &st)
	for err == unix.EINTR {
		err = call(abs, &st)
	}
	if err != nil {
		return status{}, err
	}
	s := status{
		kind:  other,
		size:  st.Size,
		mtime: st.Mtim.Nano(),
		ctime: st.Ctim.Nano(),
		inode: uint64(st.Ino),
		mode:  uint32(st.Mode),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.kind = file
		if st.Mode&unix.S_IXUSR != 0 {
			s.kind = executable
		}
	case unix.S_IFDIR:
		s.kind = directory
	case unix.S_IFLNK:
		s.kind = symlink
	}
	return s, nil
}
