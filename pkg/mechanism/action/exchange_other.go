//go:build !linux && !windows

package action

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
