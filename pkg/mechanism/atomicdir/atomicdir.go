// Package atomicdir replaces folders in one step, as package atomicfile does with files.
//
// Linux and macOS exchange the old folder and the new one at once: whoever looks sees one of them, whole. Other systems need two
// steps, and a process that is killed between them leaves the old folder under the temporary name with .old, and no folder under
// its own name.
//
// What must never be in here: what the folders hold.
package atomicdir

import (
	"errors"
	"io/fs"
	"os"

	"slipway.build/pkg/mechanism/exchange"
)

// Replace gives the folder tmp the name dir, on the same file system, and removes what had that name. An error leaves dir as it was,
// unless only removing the old folder failed: then dir is the new one.
func Replace(tmp, dir string) error {
	err := os.Rename(tmp, dir) // replaces nothing, or on some systems an empty folder
	if err == nil {
		return nil
	}
	if _, missing := os.Lstat(dir); errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	if err = exchange.Names(tmp, dir); errors.Is(err, errors.ErrUnsupported) {
		err = inTwoSteps(tmp, dir)
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(tmp)
}

// inTwoSteps exchanges two folders where the system cannot.
func inTwoSteps(tmp, dir string) error {
	old := tmp + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.Rename(old, tmp)
}
