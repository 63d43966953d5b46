// Package lint looks for mistakes in Go code by analysis: in the packages of a tree, and in what its patches change in Kubernetes.
//
// # What is looked for
//
//   - everything that `go vet` reports, by the same analyzers;
//   - what does not compile, on any of the platforms;
//   - in Kubernetes: log calls (logcheck) and names that upstream forbids (forbidigo), as its hack/logcheck.conf and hack/golangci.yaml
//     configure them; imports that an .import-restrictions file forbids, and feature gates that are not in upstream's list of versions.
//     For the last two, upstream's own programs are compiled from its repository and run, if patches change what they look at;
//   - fields of the API that a patch removes, or that it gives another number or type in protocol buffers: clients and stored objects of
//     other versions have the old ones.
//
// Upstream's code has problems of its own. Those on lines that a patch adds or changes count as the patch's, and so does whatever does not
// compile, a forbidden import, or a feature gate that is not listed: upstream releases nothing with these. //nolint comments hide problems,
// as they do in golangci-lint, which upstream runs.
//
// # How
//
// slipway is its own tool: `go vet -vettool` starts it for each package, see package vettool. So dependencies are compiled once, with the
// flags of a release, and results are in Go's cache. It works where tests do, in a copy of upstream's repository: see package kubetest.
//
// # What must never be in here
//
// How results are shown to users, and which platforms a tree has.
package lint
