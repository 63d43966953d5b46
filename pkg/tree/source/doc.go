// Package source answers: which files are the sources?
//
// They are found in one of three ways, and come out equal by all of them:
//
//   - In a clean git work tree they are what the commit holds, byte by byte as it was committed. Line endings,
//     filters and sparse checkouts make a work tree differ from its commit; none of them matters here, nor do
//     the attributes by which git archive leaves out or rewrites files.
//   - In a changed one they are the files of the work tree that git tracks or that it would track if asked: what is
//     ignored stays out, what was deleted is gone.
//   - Without git, in an unpacked source tarball, they are all files there are. A release that is built there has
//     the checksums of the one that the tarball came from.
//
// Some names are never sources, whichever way: in the top folder _output, the file version (whoever packs the
// sources adds a new one, see package stamp) and Bazel's symbolic links bazel-*, and .git everywhere.
//
// Folders are no entries of their own, as git knows only files. Of a file's mode only the owner's x bit counts; symbolic
// links stay links. Submodules and repositories inside the work tree are refused: what they hold is not in the
// commit, and a tarball without it would not build.
//
// Where the entries end up (the prefix in the tarball, its compression, its name) must never be in here.
package source
