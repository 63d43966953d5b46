// Package conformance runs Kubernetes' own conformance specs against a cluster: those of the e2e.test in the test tarball of the
// cluster's release, with the images of that tarball.
//
// A run has three parts. A dry run of e2e.test lists the specs (Spec). Then they run: in one pass, or, if several run at once, in
// two, with those that are [Serial] by themselves at the end. While a pass runs, e2e.test posts which specs ended; when it is
// over, e2e.test writes a report. The Report here is made from both, and text, JSON and JUnit's XML show it.
//
// Specs are chosen by their label Conformance, and among these by patterns of their full names. So no pattern adds a spec that is
// not a conformance spec.
//
// The images are substitutes: they have upstream's names, but are built with the release. Each report says so, and lists them.
//
// # What must never be in here
//
// A list of specs, of images, or of reasons why a spec may fail: e2e.test knows the specs, the tarball has the images, and each
// spec that did not pass is named.
package conformance
