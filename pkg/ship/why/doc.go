// Package why says where the parts of a release come from.
//
// [File] answers for an artifact, or for any file in a tarball or in an image: which action made it, of which sources, modules, patches
// and packages, with which flags, and where else it stands. [Module] answers for a Go module: which binaries link it, through which
// imports. Both read release.json; the files themselves are read only to find what it does not name. An [Answer] is a value; text and
// JSON are views of it.
//
// What must never be in here: how a release is made, and where a tree keeps what it knows of packages.
package why
