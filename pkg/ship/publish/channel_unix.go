//go:build !windows

package publish

import (
	"errors"
	"os"
)

// syncFolder makes the names in a folder survive a power failure.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
