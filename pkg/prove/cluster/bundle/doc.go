// Package bundle opens the tarballs of a release that a cluster is made from, in a folder or in a file that package ship/bundle has
// written.
//
// A bundle is a tarball with the release.json that describes it: packed, in the folder of a release, or unpacked in that of a cluster. An
// unpacked one has all paths that the tarball has, so the same code finds files in both. Only release.json says where an artifact is.
//
// # What must never be in here
//
// Clusters, and which artifacts they need.
package bundle
