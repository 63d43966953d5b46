// Package badrequest separates errors that are the fault of a request, such as an unknown name or a value that cannot be
// used, from failures in carrying it out.
//
// An error marks itself with a method BadRequest(), which does nothing. Mark marks one that has no type of its own.
//
// What must never be in here: how a request is answered, such as exit codes (package cli).
package badrequest

import "errors"

// Mark marks an error as the request's fault.
func Mark(err error) error { return badError{err} }

// Is reports whether an error, or an error that it wraps, is the request's fault.
func Is(err error) bool {
	var bad interface{ BadRequest() }
	return errors.As(err, &bad)
}

type badError struct{ error }

func (badError) BadRequest()     {}
func (e badError) Unwrap() error { return e.error }
