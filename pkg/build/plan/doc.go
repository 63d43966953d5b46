// Package plan turns a request ("a quick release", "cmd/kubectl for darwin/arm64") into the graph of actions
// that fulfills it. It is the one place that knows how a release is put together: which binaries go into which
// image and which tarball, and what each of these depends on.
//
// A Project is the tree with all that is read from it once: catalog, stamp, sources. A Request names what to
// make. Project.Graph plans it; running the graph is package action's, showing it package console's.
//
// Nothing is made here. What the actions do is in the packages they call: road, license, image, archive, attest. Only where
// Bazel makes a release inside of its own actions, some steps are in no graph, as they take place elsewhere: PackSources,
// GatherLicenses and CopySources.
package plan
