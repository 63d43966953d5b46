// Package pack makes the tarballs of a release: an action for each, described by a [Spec].
//
// While the action writes a tarball, it computes its digests, so that nothing needs to read it again. It writes the SHA-512 to a file
// of its own. The SHA-256 is in the action's record.
//
// What must never be in here: which tarballs a release has, and what they hold.
package pack
