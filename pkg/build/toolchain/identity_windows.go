package toolchain

import (
	"fmt"
	"os"
)

// identity is other for a file that was written; there is no change time that would tell of one put back.
func identity(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano()), nil
}
