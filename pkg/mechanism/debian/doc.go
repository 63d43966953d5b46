// Package debian brings Debian packages into what is made here, in two ways.
//
// A [System] is a whole root file system, made by mmdebstrap: the base of the build image on machines that cannot pull one,
// and the place that Bazel runs in on machines where it is not installed.
//
// A [Lock] names the exact packages whose files are in a container image. [Fetch] gets them, by sum, and [Unpack] reads
// their files, with nothing of Debian's installed; [Action] does both and writes a tar. [CopyrightAction] collects their
// copyright files. [Resolve] makes locks of the packages that Debian's archives have now: the main one, and that of security fixes. It
// checks them by the keys of Debian's archive.
//
// Packages come from the mirrors that the user names, or from where the apt of this machine has them, or, since mirrors remove old versions
// and not every machine has apt, from an archive of Debian's past: see [Sources]. Those of a lock are kept by their sums, below the
// user's cache folder: once there, nothing is asked.
//
// # What must never be in here
//
// Which packages, and what for. A mirror's name or a credential in what is made: callers remove what mmdebstrap copies.
package debian
