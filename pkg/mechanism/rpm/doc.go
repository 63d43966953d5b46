// Package rpm writes packages of rpm, whose bytes depend on what is in them alone. They are not signed.
//
// An rpm is a lead that nobody reads any more, a header with digests, a header that says everything, and a compressed cpio archive of the
// files. The headers are lists of tags with numbers, see https://rpm-software-management.github.io/rpm/manual/format.html. The digests are
// what rpm has wanted since version 4.14: SHA-256 of the header, in which are those of the archive and of each file.
//
// It is written by hand, although there is github.com/google/rpmpack, which has files in memory and compresses all of them for each
// package. Here, package archive has the compressed contents of binaries, since tarballs hold these, too.
//
// Every file below /etc is configuration, which rpm does not replace once somebody has changed it, and those below /usr/share/doc are
// documentation. Everything belongs to root. A package owns the folders among its files, and no others.
//
// What must never be in here: which packages there are, and what is in them.
package rpm
