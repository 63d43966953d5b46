// Package kit has what a new distribution is made of: thin mains, images, manifests, the list of what a release holds, and files for make.
//
// They are this repository's own, in an archive that `make update` writes and `make verify` compares, since modules leave out folders that
// are modules themselves, and go:embed does, too.
//
// # What must never be in here
//
// What a release holds, and how it is made. Which version of Kubernetes a distribution moves to.
package kit
