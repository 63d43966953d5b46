package source

import (
	"io/fs"
	"strings"

	"slipway.build/pkg/tree/stamp"
)

// excluded says that a file is never a source, or that nothing in a folder is.
func excluded(name string, mode fs.FileMode) bool {
	top, _, below := strings.Cut(name, "/")
	switch {
	case top == "_output", name == ".git", strings.HasSuffix(name, "/.git"):
		return true
	case below:
		return false
	}
	return name == stamp.File || mode&fs.ModeSymlink != 0 && strings.HasPrefix(name, "bazel-")
}
