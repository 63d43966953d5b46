// Package gotest runs `go test -json` and reports on it.
//
// Run starts a prepared command and reads its events. When a package ends, it prints what go test prints without -v: one line if it
// passed, and the output of the tests that failed if it did not. Unlike go test, it leaves out what the passing tests of a package
// that failed printed. It returns a [Summary]: packages and tests with their outcomes, which [Summary.Results] turns into
// results for package report, and so into JUnit's XML.
//
// Failed tests are no error: they are in the Summary. An error of Run means that the tests did not run to their end.
//
// # What must never be in here
//
// Which packages are tested, with which Go and flags.
package gotest
