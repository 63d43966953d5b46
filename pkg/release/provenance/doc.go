// Package provenance states how a release was built, in the form that others verify: in-toto statements with the predicate SLSA
// provenance v1.
//
// A statement follows from release.json alone: everybody can make it again, and verify does. One is about the whole release, and there
// is one for each tarball, deb, rpm, image and image index. They name what went in: the sources, every module by its dirHash, patches,
// toolchains, Debian packages, and the variables that decide bytes. They name no time, host, user or road.
//
// See docs/provenance.md, the page that the build types point to.
//
// What must never be in here: how artifacts are made; signatures.
package provenance
