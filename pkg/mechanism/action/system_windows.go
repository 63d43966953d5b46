package action

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func unlock(f *os.File) { _ = f.Close() }

// tryLock locks a byte far beyond the end: on Windows, a locked range cannot be read, and others read the holder's
// process ID.
func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

// replaceLarge replaces the file final with fresh. It cannot keep the old one open to free it later: Windows does not replace an open file.
func replaceLarge(final, fresh string) error { return os.Rename(fresh, final) }
