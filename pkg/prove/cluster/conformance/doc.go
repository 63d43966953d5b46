// Package conformance runs Kubernetes' own conformance specs, with the programs and images of the release's test tarball: those of
// e2e.test against a cluster, and those of e2e_node.test on a node with a container runtime, on which that starts the kubelet.
//
// A run has three parts. A dry run of the suite lists the specs (Spec). Then they run: in one pass, or, if several run at once, in
// two, with those that are [Serial] by themselves at the end. While a pass runs, the suite prints which specs ended; when it is
// over, it writes a report. The Report here is made from both, and text, JSON and JUnit's XML show it.
//
// Specs are chosen by their label, Conformance or NodeConformance, and among these by patterns of their full
// names. So no pattern adds a spec that is not a conformance spec.
//
// The images are substitutes: they have upstream's names, but are built with the release. Each report says so, and lists them.
//
// # What must never be in here
//
// A list of specs, of images, or of reasons why a spec may fail: the suites know the specs, the tarball has the images, and each
// spec that did not pass is named.
package conformance
