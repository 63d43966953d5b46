// Package lint looks for mistakes in Go code by analysis: in the packages of a tree, and in what its patches change in Kubernetes.
//
// # What is looked for
//
//   - everything that `go vet` reports, by the same analyzers;
//   - what does not compile, on any of the platforms;
//   - in Kubernetes: log calls (logcheck) and names that upstream forbids (forbidigo), as its hack/logcheck.conf and hack/golangci.yaml
//     configure them; imports that an .import-restrictions file forbids, and feature gates that are not in upstream's list of versions.
//     For the last two, upstream's own programs are compiled from its repository and run.
//
// Upstream's code has problems of its own. A patch is to blame for those on lines that it adds or changes, for whatever does not compile,
// for forbidden imports and for feature gates: upstream releases nothing with these. A comment //nolint hides a problem, as golangci-lint
// reads it, which upstream runs.
//
// # How
//
// slipway is its own analyzer: [Main] makes a process of it one that `go vet -vettool` starts for each package. So dependencies are
// compiled once, with the flags of a release, and results are in Go's cache. Tests run in a copy of upstream's repository, and so does this:
// see package kubetest.
//
// # What must never be in here
//
// How results are shown to users, and which platforms a tree has.
package lint
