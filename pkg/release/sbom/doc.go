// Package sbom lists what a release consists of, as a software bill of materials (SBOM), in SPDX 2.3 and CycloneDX 1.6.
//
// A [Document] is the neutral form of both: components, and how they belong together. [Release], [Image] and [Source] make one of a
// release's description, and [Document.SPDX] and [Document.CycloneDX] write it. The bytes depend on the description alone: the time is
// that of the commit, and identifiers are digests.
//
// The sum of a Go module, h1:…, is a digest of a list of digests. It stands where text may stand, and never where a reader expects the
// SHA-256 of a file.
//
// What must never be in here: how artifacts are made; the network; where a release lies.
package sbom
