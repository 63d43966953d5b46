// Package input knows what a release is made of besides its tree, and where an unpacked tree has it.
//
// A tree alone is not enough to make a release: it needs Go modules, the Go that compiles, and Debian packages. The file
// [Tarball] holds the tree and all of them, so that a machine without network can make the release from this one file:
//
//	README.md, cmd/, pkg/, …      the tree, as in kubernetes-src.tar.gz
//	version                       its version
//	_inputs/go/…                  modules in the layout of a module proxy, and toolchains as modules
//	_inputs/debian/SHA256.deb     Debian packages
//	_inputs/SHA256SUMS            the sum of every other file, for sha256sum -c
//
// [Read] reads from the go.sum and debian.lock files of a tree what its inputs are. [Find] finds the folder that has them.
// [Check] compares such a file with the sums in it.
//
// What must never be in here: the network; how inputs are fetched and packed.
package input
