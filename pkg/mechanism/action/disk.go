package action

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"slipway.build/pkg/mechanism/statcache"
)

// replace renames fresh to final. If either is a directory, it first moves what has the final name to old.
func replace(final, fresh, old string) error {
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return err
	}
	was, wasErr := statcache.Lstat(final)
	is, err := statcache.Lstat(fresh)
	if err != nil {
		return err
	}
	if wasErr == nil && (was.Kind == directory || is.Kind == directory) {
		if err := os.MkdirAll(filepath.Dir(old), 0o777); err != nil {
			return err
		}
		if err := os.Rename(final, old); err != nil {
			return err
		}
	}
	if wasErr == nil && max(was.Size, is.Size) >= largeFile && was.Kind != directory && is.Kind != directory {
		return replaceLarge(final, fresh)
	}
	return os.Rename(fresh, final)
}

// largeFile is the size, in bytes, of a file that takes long to replace, and to free.
const largeFile = 16 << 20

// removeAll removes read-only folders, too, such as the Go command's module cache.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// advise adds to an error of a full disk what the user can do.
func advise(err error) error {
	if full(err) {
		return fmt.Errorf("%w: free some and run the same command again; finished work is kept", err)
	}
	return err
}

// full reports whether an error is that of a full disk.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
