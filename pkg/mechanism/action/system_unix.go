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

// replaceLarge replaces the file final with fresh. It swaps their names: when rename(2) replaces a file, ext4 starts writing the new one to
// the disk, and other renames wait, 0.3 s for half a gigabyte. The old file is freed while other work goes on, which takes 0.4 s for a
// release's tarballs.
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
