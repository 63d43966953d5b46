package bazel

import (
	"os"
	"path/filepath"
)

// pinFile says which Bazel a workspace is for.
const pinFile = ".bazelversion"

// Workspace returns the folder in which Bazel runs for the tree at root: the tree itself, if it pins a Bazel, or else one below _output,
// which is made of the tree and of slipway's own rules.
func Workspace(root string) string {
	if _, err := os.Stat(filepath.Join(root, pinFile)); err == nil {
		return root
	}
	return filepath.Join(root, filepath.FromSlash(folder), "workspace")
}
