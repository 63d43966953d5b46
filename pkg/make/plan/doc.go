// Package plan turns a request ("a quick release", "cmd/kubectl for darwin/arm64") into the graph of actions that fulfills it. It is
// the one place that knows how a release is put together: which binaries go into which image and which tarball, and what each of
// these depends on.
//
// A Project is the tree, with everything that is read from it once: catalog, stamp, sources. A Request names what to make.
// [Project.Plan] plans it in two steps: it resolves what the request makes (resolve.go), then describes each part of that once, as a
// spec (graph.go). Package execute runs the graph, and package console shows how it goes.
//
// Nothing is made here. Packages compile, license, debian, image, pack and describe turn specs into actions. Some steps are in no
// graph, because Bazel runs them when it makes a release inside its own actions: PackSources, GatherLicenses and CopySources.
package plan
