package action

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

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

func lstat(abs string) (status, error) { return ask(os.Lstat, abs) }

func stat(abs string) (status, error) { return ask(os.Stat, abs) }

// ask finds neither a change time nor an inode, so an edit whose modification time is put back goes unnoticed.
func ask(call func(string) (fs.FileInfo, error), abs string) (status, error) {
	info, err := call(abs)
	if err != nil {
		return status{}, cause(err)
	}
	s := status{kind: other, size: info.Size(), mtime: info.ModTime().UnixNano(), mode: uint32(info.Mode())}
	if data, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		s.ctime = data.CreationTime.Nanoseconds()
	}
	switch {
	case info.Mode().IsRegular():
		s.kind = file
	case info.IsDir():
		s.kind = directory
	case info.Mode()&fs.ModeSymlink != 0:
		s.kind = symlink
	}
	return s, nil
}
