// Package gotest runs `go test -json` and reports on it.
//
// Run starts a prepared command and reads its events. When a package ends, Run prints what go test prints without -v: one line if the
// package passed, and otherwise the output of the tests that failed. Unlike go test, it leaves out what passing tests of a failed package
// printed. It returns a [Summary]: packages and tests with their outcomes, which [Summary.Results] turns into
// results for package report, and so into JUnit's XML.
//
// Failed tests are no error: they are in the Summary. An error of Run means that the tests did not run to their end.
//
// # Why no library reads the events
//
// gotestsum's testjson finds the tests that a panic or a timeout cut short only when the last package has ended, collects the errors of
// all compiles in one list, and keeps no order between what a package and its tests print. Run needs all of this when a package
// ends, so testjson could do little more than decode lines. It would add six modules, which print in color.
//
// # What must never be in here
//
// Which packages are tested, with which Go and flags.
package gotest
