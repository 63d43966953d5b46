// Package source finds the files that are the sources of a tree.
//
// There are three ways to find them, with equal results:
//
//   - In a clean git work tree, the sources are what the commit holds, byte by byte. Line endings, filters and sparse
//     checkouts make a work tree differ from its commit, and attributes make git archive leave out or rewrite files;
//     none of these has an effect here.
//   - In a changed work tree, the sources are the files that git tracks, or would track if they were added. Ignored and
//     deleted files are not sources.
//   - Without git, in an unpacked source tarball, all files are sources. A release that is built there has the checksums
//     of the release that the tarball comes from.
//
// Some files are never sources: .git in any folder; and, in the top folder, _output, _inputs (see package input), the file version (a new
// one is packed with the sources, see package stamp) and Bazel's symbolic links bazel-*.
//
// Folders have no entries, since git knows only files. Only the owner's x bit of a file's mode counts. Symbolic links stay
// links. Submodules and repositories inside the work tree are errors: the commit does not hold their content, and a tarball
// without it would not build.
//
// What must never be in here: where the entries end up (the prefix in the tarball, its compression, its name).
package source
