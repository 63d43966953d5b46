// Package exchange swaps the names of two files or folders at once, where the system can: whoever looks finds each name, and something whole
// under it.
//
// What must never be in here: what is done where the system cannot.
package exchange

import "os"

// Names swaps the names of two files or folders on one file system. Its error is an [errors.ErrUnsupported] if the system, or that file system, cannot.
// A file that had just been written may be empty after a power failure, as ext4 does not begin to write it to the disk, which it does before
// rename(2) gives a file the name of another one (its option auto_da_alloc).
func Names(a, b string) error {
	if err := swap(a, b); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}
