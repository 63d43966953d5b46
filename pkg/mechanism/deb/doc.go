// Package deb writes Debian packages, whose bytes depend on what is in them alone.
//
// A deb is an ar file of three members: the version of the format, control.tar.gz with what dpkg has to know, and data.tar.gz with the
// files, see deb(5). The ar file is written by hand, since it is three headers, and libraries compress the files anew for each package.
// Here, package archive does, from a cache of compressed contents. So a binary that a tarball has, too, costs no time.
//
// Every file below /etc is configuration, which dpkg does not replace once somebody has changed it. Everything belongs to root. There is no
// list of MD5 sums: dpkg makes one when it unpacks a package without.
//
// What must never be in here: which packages there are, and what is in them.
package deb
