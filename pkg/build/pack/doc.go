// Package pack makes the tarballs of a release: an action for each, described by a [Spec].
//
// Beside each tarball the action writes a file with its SHA-512, computed while the tarball was written, so that nobody has to read
// it again. Its SHA-256 is what the action's record has.
//
// What must never be in here: which tarballs a release has, and what they hold.
package pack
