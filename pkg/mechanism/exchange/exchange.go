// Package exchange swaps the names of two files or folders in one step, on systems that can. Both names exist at any moment.
//
// What must never be in here: what is done where the system cannot.
package exchange

import "os"

// Names swaps the names of two files or folders on one file system. Its error matches [errors.ErrUnsupported] if the system or the file
// system cannot.
//
// When rename(2) replaces a file, ext4 starts writing the new one to the disk (mount option auto_da_alloc). It does not when names are
// swapped, so a file that was just written may be empty after a power failure.
func Names(a, b string) error {
	if err := swap(a, b); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}
