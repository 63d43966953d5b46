package folder

import (
	"io/fs"
	"path"
	"strings"
)

// Names at the top of a tree that are never sources.
const (
	Output  = "_output"            // what slipway makes
	State   = Output + "/.slipway" // what it remembers of that
	Inputs  = "_inputs"            // what package input has unpacked
	Version = "version"            // the file with the version of a source tarball, see package stamp
)

// Excluded reports whether a file, or everything in a folder, is never a source: .git in any folder, and at the top [Output], [Inputs],
// [Version] and Bazel's symbolic links bazel-*. Output and Inputs may be links to other disks.
func Excluded(name string, mode fs.FileMode) bool {
	top, _, below := strings.Cut(name, "/")
	switch {
	case top == Output, top == Inputs, name == ".git", strings.HasSuffix(name, "/.git"):
		return true
	case below:
		return false
	}
	return name == Version || mode&fs.ModeSymlink != 0 && strings.HasPrefix(name, "bazel-")
}

// Leaving reports whether a file has the name of one that an editor or a file manager leaves beside files: a lock (.#x), a copy (#x#, x~),
// a swap file (.x.swp), .DS_Store.
func Leaving(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") {
		swap, _ := path.Match(".*.sw[a-z]", base) // the pattern is valid
		return swap || strings.HasPrefix(base, ".#") || base == ".DS_Store"
	}
	return len(base) > 1 && (strings.HasSuffix(base, "~") || strings.HasPrefix(base, "#") && strings.HasSuffix(base, "#"))
}

// Hidden reports whether a file is no data of its folder, though it has the suffix of such: its name begins with a dot, or it is a
// [Leaving].
func Hidden(name string) bool { return strings.HasPrefix(path.Base(name), ".") || Leaving(name) }
