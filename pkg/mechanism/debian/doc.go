// Package debian brings Debian packages into what is made here, in two ways.
//
// A [System] is a whole root file system, made by mmdebstrap: the base of the build image on machines that cannot pull one,
// and the place that Bazel runs in on machines where it is not installed.
//
// A [Lock] names the exact packages whose files are in a container image. [Fetch] gets them, by sum, and [Unpack] reads
// their files, with nothing of Debian's installed; [Action] does both and writes a tar. [CopyrightAction] collects their
// copyright files. [Wish.Resolve] makes a lock of the packages that an archive has now.
//
// Packages come from the mirror that the user names (SLIPWAY_DEBIAN_MIRROR), or from where the apt of this machine has them.
// Those of a lock are kept by their sums, below the user's cache folder: once there, no mirror is needed. They may also come
// from a folder, and, since mirrors remove old versions, from an archive of Debian's past: see [Sources].
//
// # What must never be in here
//
// Which packages, and what for. A mirror's name or a credential in what is made: callers remove what mmdebstrap copies.
package debian
