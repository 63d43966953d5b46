//go:build !linux && !darwin

package exchange

import "errors"

func swap(string, string) error { return errors.ErrUnsupported }
