// Package rebuild makes a release again from its provenance, and says whether the same came out.
//
// [Open] reads a statement of provenance. [Prepare] unpacks the tree that it names, with a kubernetes-inputs.tar or from the tarball of the
// sources, and compares everything that the release would be made of with what the statement says it was made of: what is missing or
// another one is named before anything is built. [Tree.Build] makes the release in that tree, by the tree's own slipway: a later one may
// make releases differently. [Tree.Compare] compares what was made, by digest.
//
// What must never be in here: how a release's artifacts are made, and how two releases differ.
package rebuild
