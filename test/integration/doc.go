// Package integration tests releases as users make them: with make and the slipway command, on the real sources. It checks the
// results with the tools that users have: GNU tar, sha256sum, docker, skopeo, the kernel that starts a binary.
//
//	make test-integration    what every change must pass, in minutes
//	make soak                the same with more of everything, in hours
//
// # How it is put together
//
// All tests share one checkout of the sources as they are in the work tree (with uncommitted changes committed, so that it is
// clean), and one quick release in it: see baseline. A test that changes that checkout or its _output ends by making the same
// release again, which must have the same checksums. Tests that need another checkout clone this one. Nothing is made in the work
// tree itself. Only the Go caches are shared with it, except by the soak test that begins without any.
//
// Tests that share the checkout run one at a time. When they are done, three groups run side by side, each test by test: clusters,
// the container road with the documents of a release, and Bazel with what else takes long in a clone. See lane. They may read the shared release and must not change it.
// A test joins its group first of all, by needNodes, needEngine, needBazel or cloneLane.join. One cluster of two nodes serves everything that needs a cluster that works.
//
// Most edge cases use kube-log-runner: it is built in the same way as kube-apiserver, and links in a second.
//
// Tests of the container road use a real container engine, the one that the docker command finds, and check what happens by the
// engine's own events. Except for the equality test they use a tree of a few files: see smallTree. The build image is the real one;
// if the engine has none, making it takes a minute or two.
//
// CI has an hour, so time is shared. What go build compiles in a test has the flags of a release (likeRelease): a compile of Kubernetes
// with other flags is one of minutes. What repeats something at length is for make soak. In CI, test/slowest lists where time goes.
//
// What this machine's kernel cannot show, such as a cluster with cgroup version 2 alone, is tested in a guest, an emulated machine
// with Debian's kernel: see test/guest.
//
// # Settings
//
//   - SLIPWAY_CI=1: a test fails if a program that it needs is not installed. Otherwise it is skipped, and names the package.
//   - SLIPWAY_TARBALLS=FOLDER: tests that boot clusters use the tarballs in this folder instead of making a release.
//   - SLIPWAY_NEXT_TARBALLS=FOLDER, SLIPWAY_EARLIER_TARBALLS=FOLDER: tests that upgrade clusters use these tarballs of the next patch
//     release and of the minor version before.
//   - SLIPWAY_SOAK_KILLS=N: how many kills the soak test spreads over a run, 20 by default.
//
// # What must never be in here
//
// Imports of the toolchain's packages: what users cannot reach is tested beside the code. Calls of t.Parallel, except by a lane.
package integration
