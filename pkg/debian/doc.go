// Package debian makes root file systems of Debian packages, with mmdebstrap: the base of the build image where none can be
// pulled, and the place that Bazel runs in where none is installed.
//
// Packages come from the mirror that the user names (SLIPWAY_DEBIAN_MIRROR), or from where the apt of this machine has them.
//
// # What must never be in here
//
// Which packages, and what for. A mirror's name or a credential in what is made: callers remove what mmdebstrap copies.
package debian
