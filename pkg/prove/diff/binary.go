package diff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
)

// compareBytes compares the contents of two files, as programs if Go made them. The error is an UnknownGoError.
func compareBytes(a, b []byte, f *File) error {
	if bytes.Equal(a, b) {
		return nil
	}
	x, errA := openExe(a)
	y, errB := openExe(b)
	if errors.As(errA, new(UnknownGoError)) {
		return fmt.Errorf("in A: %w", errA)
	}
	if errors.As(errB, new(UnknownGoError)) {
		return fmt.Errorf("in B: %w", errB)
	}
	err := cmp.Or(errA, errB)
	if err == nil {
		err = compareExes(x, y, f)
	}
	switch {
	case err == nil && len(f.Reasons) == 0:
		f.add(Equivalent, "unused bytes", "only unused bytes differ, first at byte %d", firstDifference(a, b))
	case err == nil:
	case !isProgram(a) && !isProgram(b):
		f.add(Different, "content", "first at byte %d; %d bytes, and %d", firstDifference(a, b), len(a), len(b))
	default:
		f.add(Different, "content", "%v", err)
	}
	return nil
}

// isProgram reports whether data looks like an executable of a system that Go knows.
func isProgram(data []byte) bool {
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe"} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return true
		}
	}
	return false
}
