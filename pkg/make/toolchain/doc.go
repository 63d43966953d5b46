// Package toolchain finds the Go that a release is pinned to, and runs it in an environment in which no setting of the user
// can change a byte of its output.
//
// release.yaml pins the version. For each host it also has the sum of the module golang.org/toolchain as which this
// version was released. (go.sum cannot hold it: the go command looks up a toolchain's sum only in the checksum database,
// which may be switched off.)
//
// If the installed Go says that it is the pinned version, its files are hashed like the module's, and it is used if the sum
// is the same. The sum differs for a distribution's patched Go, for other default experiments, for an edited standard
// library, and for a go.env that sets more than where modules come from: GOENV=off does not switch that file off, and an
// empty variable does not hide its settings. The sum is remembered in the user's cache folder until a file changes. On a
// host without a sum in release.yaml only the versions are compared, and progress says so.
//
// Any other Go, older or newer, only fetches the pinned one as that module, which must have the sum, too. [Download] gets
// the Go of another platform, for a container, with the same check.
//
// The user's settings to reach modules (GOPROXY, GOSUMDB, GOPRIVATE, …, from the environment or the go/env file) are passed
// on, because they decide where bytes come from and never which bytes they are.
//
// # What must never be in here
//
// What is compiled, and with which flags: roads decide that. Settings with which a user could change the pinned Go.
package toolchain
