// Package toolchain finds the Go that a release is pinned to, and runs it in an environment in which nothing
// of the user's can change a byte of what it makes.
//
// The pinned version comes from release.yaml, and with it, per host, the sum of the module golang.org/toolchain that
// this version was released as (go.sum cannot hold it: the go command looks for a toolchain's sum in the checksum
// database alone, which may be switched off).
//
// Where the installed Go says that it is that very version, its files are hashed as the module's are, and it is used if
// the sum is the same. A distribution's patched Go, one with other default experiments or one with an edited standard
// library has another, as has one whose go.env sets more than where modules come from: GOENV=off does not switch that
// file off, and an empty variable does not hide what it says. The sum is remembered in the user's cache folder until a
// file changes. Only on a host without a sum in release.yaml the version is all there is to compare, and progress says so.
//
// Any other Go, older or newer, only fetches the pinned one, as that module, whose content must have the sum too.
//
// The Go of another platform, for a container, is had by Download, with the same check.
//
// What the user has set to reach modules (GOPROXY, GOSUMDB, GOPRIVATE, …, by environment or by go/env file)
// is read first and handed on, because it decides where bytes come from and never which they are.
//
// # What must never be in here
//
// What is compiled, and by which flags: that is a road's. Settings that let a user change what the pinned Go is.
package toolchain
