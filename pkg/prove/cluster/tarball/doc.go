// Package tarball opens the tarballs of a release that a cluster is made from.
//
// With a tarball is the release.json that describes it: it is packed, in the folder of a release or in a bundle, or unpacked in that of a
// cluster. An unpacked one has all paths that the tarball has, so the same code finds files in both. Only release.json says where an
// artifact is.
//
// # What must never be in here
//
// Clusters, and which artifacts they need.
package tarball
