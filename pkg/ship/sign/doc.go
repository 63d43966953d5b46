// Package sign signs a release, and checks its signatures.
//
// Two files are signed as they are, which between them name all others by digest: release.json and SHA256SUMS. The latter is for people
// who have sha256sum and nothing of slipway's. Each has a bundle, NAME.sigstore.json, and the signature alone, NAME.sig.
//
// What is stated about a release, its tarballs and its images is signed as statements, in bundles of the folder attestations: the
// provenance of each, and for images also the signature that cosign asks for and the bill of materials. [Layout] puts those of images
// beside them, as referrers in an OCI image layout.
//
// What must never be in here: how a release is made; how signatures are made, which is package signature's.
package sign
