// Package checksum computes digests of files, and writes checksum files, SHA256SUMS and SHA512SUMS, in the form of sha256sum and
// sha512sum, which users check them with: `sha256sum -c SHA256SUMS`.
//
// What must never be in here: which files a release has, where they come from, and how they are made.
package checksum
