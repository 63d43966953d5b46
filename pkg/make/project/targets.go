package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/action"
)

const (
	TargetsProgram = State + "/mage"        // where make keeps the program with its targets
	TargetsFetched = State + "/mage.cached" // exists if a cache had that program; make removes it
)

// Targets reports whether this program is the one with the targets of make, and returns its origin.
func Targets(root string) (runs bool, program action.Origin) {
	name, err := os.Executable()
	if err != nil {
		return false, action.Built
	}
	self, err := os.Stat(name)
	if err != nil {
		return false, action.Built
	}
	if here, err := os.Stat(filepath.Join(root, TargetsProgram)); err != nil || !os.SameFile(self, here) {
		return false, action.Built // it is slipway, or another tree's
	}
	if _, err := os.Lstat(filepath.Join(root, TargetsFetched)); errors.Is(err, fs.ErrNotExist) {
		return true, action.Built
	}
	return true, action.Cached
}
