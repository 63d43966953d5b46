// Package checksum says what a release's files are, and checks that they still are.
//
// So far that is checksum files, SHA256SUMS and SHA512SUMS, in the form of sha256sum and sha512sum: users
// check them with `sha256sum -c SHA256SUMS`, and [Verify] does the same without the tool and more strictly.
//
// What must never be in here: which files a release has, where they come from, and how they are made.
package checksum
