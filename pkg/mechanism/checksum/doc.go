// Package checksum writes and checks checksum files, SHA256SUMS and SHA512SUMS, in the form of sha256sum and sha512sum.
//
// Users check them with `sha256sum -c SHA256SUMS`; [Verify] does the same without the tool and more strictly.
//
// What must never be in here: which files a release has, where they come from, and how they are made.
package checksum
