// Package plan turns a request ("a quick release", "cmd/kubectl for darwin/arm64") into the graph of actions that fulfills it. It is the
// one place that knows what a release holds: which binaries go into which image and which tarball.
//
// A Request names what to make. [New] resolves it into targets, each once (resolve.go), and asks them for their actions: see package
// target. Package execute runs the graph, and package console shows how it goes. Bazel makes a release inside its own actions, in parts:
// see bazel.go.
//
// What must never be in here: how anything is made, and how release.json describes it.
package plan
