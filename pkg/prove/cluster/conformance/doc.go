// Package conformance runs upstream's own conformance specs against a cluster: the e2e.test of the release that the cluster was made
// of, with the images of its test tarball.
//
// A run has three parts. A dry run of e2e.test says which specs there are (Spec). Then these run, in one pass, or, where several run at
// once, in two: those that are [Serial] by themselves afterwards. As they run, e2e.test tells which ended, and when a pass is over
// it writes a report, from which the Report here is made, of which summary, JSON and JUnit are views.
//
// A spec is chosen by its label Conformance, and among these by patterns that its full name has to match, so that nothing that a user
// asks for adds a spec that is not conformance.
//
// # What must never be in here
//
// A list of specs, of images or of reasons why one may fail: e2e.test knows the specs, the tarball the images, and a spec that did not
// pass is named.
package conformance
