// Package debian brings Debian packages into what is made here, in two ways.
//
// A [System] is a whole root file system, made by mmdebstrap: the base of the build image where none can be pulled, and the place
// that Bazel runs in where none is installed.
//
// A [Lock] names the exact packages whose files are in a container image: [Lock.Fetch] gets them, by sum, and [Unpack] takes their
// files out, with nothing of Debian's installed. [Wish.Resolve] makes a lock of what an archive has now.
//
// Packages come from the mirror that the user names (SLIPWAY_DEBIAN_MIRROR), or from where the apt of this machine has them. Those
// of a lock are kept by their sums, below the user's cache folder: once there, no mirror is needed.
//
// # What must never be in here
//
// Which packages, and what for. A mirror's name or a credential in what is made: callers remove what mmdebstrap copies.
package debian
