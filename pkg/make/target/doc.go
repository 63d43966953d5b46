// Package target has one type for each kind of thing that a release has, or that is a step to it: a binary, an image, a tarball, license
// texts, a document. A [Target] knows the actions that make it, and its entry in release.json. To add a kind of artifact, add a type
// here, and add it to a release in package plan.
//
// Targets are plain values that point to what they are made of. Package plan makes them, each once. Packages compile, patched, license,
// debian, image, pack, inputs and describe turn the specs that targets fill in into actions.
//
// What must never be in here: which targets a request needs.
package target
