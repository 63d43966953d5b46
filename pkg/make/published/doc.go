// Package published makes Kubernetes' modules for programs outside of the tree: k8s.io/kubernetes and the modules that upstream publishes
// from its staging folder, with the code that the components are compiled from. They are written as a module proxy has them (see
// `go help goproxy`), with the sums that a go.sum has.
//
// # Versions
//
// A release of a distribution has build metadata in its version, which Go does not take for modules. What Go takes and orders is a
// pre-release. One of upstream's own version would come before it, so the modules of v1.37.2+acme.1 are a pre-release of the next one:
//
//	v0.37.2 < v0.37.3-0.acme.1 < v0.37.3-0.acme.2 < v0.37.3-0.acme.10 < v0.37.3-alpha.1 < v0.37.3
//
// Go counts the numbers in a pre-release only if they stand between dots. [Release] refuses other metadata, because a later release would
// come before an earlier one.
//
// The modules require each other at these versions. A module that the tree does not require, such as k8s.io/code-generator, is required at
// upstream's version: no patch can change it.
//
// # What must never be in here
//
// How modules are patched, and where code is generated. Which version a tree has.
package published
