// Package conformance runs Kubernetes' own specs, above all those of conformance, with the programs and images of the release's test
// tarball. The specs of e2e.test run against a cluster. Those of e2e_node.test run on a node with a container runtime, where the suite
// starts the kubelet.
//
// Ginkgo runs the suite. A dry run lists the specs (Spec). Then they run: in one pass, or, if several run at once, in
// two, with the [Serial] ones by themselves at the end. During a pass, the suite prints which specs ended. At its end, it
// writes a report. The Report here is made from both, and is written as text, JSON and JUnit's XML.
//
// Specs are chosen by their labels, such as Conformance, and among these by patterns of their full names. So no pattern adds a spec
// that is not a conformance spec.
//
// The images are substitutes: they have upstream's names, but are built with the release. Each report says so, and lists them.
//
// # What must never be in here
//
// A list of specs, of images, or of reasons why a spec may fail: the suites know the specs, the tarball has the images, and each
// spec that did not pass is named.
package conformance
