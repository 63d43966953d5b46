// Package bundle puts a release into one file, which is carried to where there is no network.
//
// A bundle is a tar of a release for one platform, or for all that have servers. What is in it follows from release.json, from the
// signatures of the release, and from a [Request], which says what of the release was wanted:
//
//	bundle.json                 the request
//	images.txt                  a line for each name of an image, with its digest
//	manifest.json               the images as docker load and podman load find them
//	oci-layout, index.json      the images as an OCI image layout, which ctr images import and skopeo read
//	release/                    release.json, signatures, packages, server tarballs, and bills of materials of the images
//	blobs/sha256/               the images, and their signatures, provenance and bills of materials as referrers
//
// So [Bundle.Verify] computes all of it again and compares. A file of which nothing says what it should hold makes a bundle invalid. This
// is why the content of the files at the root must not change with versions of slipway: bundle.json has a number for their form.
//
// In a bundle for one platform, names are those of that platform's manifests. An index of which parts are missing would be refused
// by registries. docker load has one platform for a name, so in a bundle for all, images have the names with the processor there.
//
// The server tarball is in a bundle unless it is not wanted, although it has most of the images again: it is what boots a cluster, and what
// has containerd, the plugins of the network, and the programs for systems without packages.
//
// What must never be in here: how a release is made, and what becomes of a bundle.
package bundle
