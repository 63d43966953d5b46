// Package target has one type for each kind of thing that a release has, or that is a step to it: a binary, an image, a tarball, license
// texts, a document. A [Target] knows the actions that make it, and its entry in release.json. Nothing else does: who adds a kind of
// artifact adds a type here, and package plan says which releases have it.
//
// Targets are plain values that point to what they are made of. Package plan makes them, each once. Packages compile, license, debian,
// image, pack and describe turn the specs that targets fill in into actions.
//
// What must never be in here: which targets a request needs.
package target
