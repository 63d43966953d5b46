// Package describe makes the files that describe a release: the checksums, and release.json.
//
// A [Spec] is a planned release: artifacts without digests, and where each of them is in the tree. The actions that [Binaries] returns read
// the finished binaries. That of [Draft] fills in sizes, digests and inputs, and that of [Action], at the end, adds what is made of the
// draft.
//
// What must never be in here: which artifacts a release has.
package describe
