// Package describe makes what says what a release is: files of checksums, and release.json.
//
// A [Spec] is a release as it was planned: artifacts without digests, and where each of them is in the tree. The action of [Action]
// fills in what the files themselves say, and runs last.
//
// What must never be in here: which artifacts a release has.
package describe
