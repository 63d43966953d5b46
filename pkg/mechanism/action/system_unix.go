//go:build !windows

package action

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"slipway.build/pkg/mechanism/exchange"
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

// replaceLarge replaces the file final with fresh. It swaps their names: when rename(2) replaces a file, ext4 starts writing the new one to the
// disk, and other renames wait, 0.3 s for half a gigabyte. The old file is freed while other work goes on, which takes 0.4 s for a release's
// tarballs.
func replaceLarge(final, fresh string) error {
	if old, err := os.Open(final); err == nil {
		defer func() { go func() { _ = old.Close() }() }()
	}
	if exchange.Names(final, fresh) != nil { // rename says what is wrong, if it is not only that the file system cannot
		return os.Rename(fresh, final)
	}
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("what was there before: %w", err)
	}
	return nil
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
