package toolchain

import (
	"fmt"
	"os"
)

// identity changes when a file is written. There is no change time to notice a modification time that is set back.
func identity(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano()), nil
}
