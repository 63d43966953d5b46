// Package integration tests releases as users make them: with make and the slipway command, on the real sources. It checks the
// results with the tools that users have: GNU tar, sha256sum, docker, skopeo, the kernel that starts a binary.
//
//	make test-integration    what every change must pass, in minutes
//	make soak                what takes too long for that, in parts of under an hour: see test/soak
//
// # How it is put together
//
// All tests share one checkout of the sources as they are in the work tree (with uncommitted changes committed, so that it is clean), and
// one quick release in it: see baseline. Nothing is made in the work tree itself. Only the Go caches are shared with it, except by the soak
// test that begins without any.
//
// Four groups of tests run side by side, each test by test: see lane. The shared release is read by three of them and never changed. Tests
// of the fourth have a copy of it. They may change that, and make the same release again in the end, which must have the same files. A fifth
// group comes when three have ended: what compiles much where caches are cold.
//
// What is expensive is made once, when it is first needed, and read by all: the release, a signed copy of it, one with the test set, the
// next release, the build image, a cluster of two nodes that works, Bazel's output base, servers of shared caches.
//
// Most edge cases use kube-log-runner: it is built in the same way as kube-apiserver, and links in a second. Those that need a whole
// release, but not the real one, use a tree of a few files: see smallTree and smallRelease.
//
// Tests of the container road use a real container engine, the one that the docker command finds, and check what happens by the
// engine's own events. The build image is the real one; if the engine has none, making it takes a minute or two.
//
// # Where the time goes
//
// .ci/run should take 25 minutes on two slow processors if the Go caches are warm, and one cold release more if they are not. A cluster
// decides how long it can be: it mostly waits, for Pods, probes and leases, and everything else gives way to it (giveWay). So it boots as
// soon as there is a release, and its tests come one after another. On 2026-11-29, beside the other lanes, they took:
//
//	seconds  cluster of two nodes                 meanwhile, by the other lanes and by .ci/run
//	    140                                       the release
//	    180  boot, and what is quick              small trees in containers; a copy of the release, and its signatures
//	    265  verify, half of the checks           the release with the test set, the next release; damage, edits and kills; lints
//	    115  conformance specs                    releases elsewhere; shared caches; other clients
//	     85  storage                              Bazel, distributions, examples, lint of patches
//	     60  replace
//	    125  hollow nodes
//	    115  examples
//	    225  upgrade under load, with a kill
//	    110  a kill, an interruption, no root
//
// Processor seconds with cold caches: 1,830 for what Bazel makes, 670 for the release with the test set. Another machine took ten minutes
// for a verify by itself, where this one took three. There, 70 minutes were not enough with Bazel's caches cold, since the cluster took
// both processors for the first half of the time. So CI runs half of the checks of clusters, and Bazel is last.
//
// What a test may cost follows from this: a minute of a processor is half a minute. What go build compiles in a test has the flags of a
// release (likeRelease): a compile of Kubernetes with other flags is one of minutes. What shows something rare, or repeats something at
// length, is for make soak (see rare). In CI, test/slowest lists what each test cost, and .ci/run each step.
//
// What this machine's kernel cannot show, such as a cluster with cgroup version 2 alone, is tested in a guest, an emulated machine
// with Debian's kernel: see test/guest.
//
// # Settings
//
//   - SLIPWAY_CI=1: a test fails if a program that it needs is not installed. Otherwise it is skipped, and names the package.
//   - SLIPWAY_TESTS_UNTIL=SECONDS: tests that would begin after this time (seconds since 1970) are skipped. .ci/run sets it, since a run of
//     CI that is cut off says nothing; it lists at its end what was skipped.
//   - SLIPWAY_TARBALLS=FOLDER: tests that boot clusters use the tarballs in this folder instead of making a release.
//   - SLIPWAY_NEXT_TARBALLS=FOLDER, SLIPWAY_EARLIER_TARBALLS=FOLDER: tests that upgrade clusters use these tarballs of the next
//     release and of the minor version before.
//   - SLIPWAY_SOAK_KILLS=N: how many kills the soak test spreads over a run, 20 by default.
//
// # What must never be in here
//
// Imports of the toolchain's packages: what users cannot reach is tested beside the code. Calls of t.Parallel, except by a lane.
package integration
