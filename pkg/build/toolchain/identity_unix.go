//go:build !windows

package toolchain

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// identity changes when a file is written or replaced, even if its modification time is set back.
func identity(file string) (string, error) {
	var st unix.Stat_t
	err := unix.Stat(file, &st)
	for err == unix.EINTR {
		err = unix.Stat(file, &st)
	}
	if err != nil {
		return "", &fs.PathError{Op: "stat", Path: file, Err: err}
	}
	return fmt.Sprint(st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino), nil
}
