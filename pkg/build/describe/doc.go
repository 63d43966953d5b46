// Package describe makes the files that describe a release: the checksums, and release.json.
//
// A [Spec] is a planned release: artifacts without digests, and where each of them is in the tree. The action that [Action] returns
// fills in sizes, digests and inputs from the finished files. It runs last.
//
// What must never be in here: which artifacts a release has.
package describe
