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
// Most edge cases use kube-log-runner: it is built in the same way as kube-apiserver, and links in a second.
//
// Tests of the container road use a real container engine, the one that the docker command finds, and check what happens by the
// engine's own events. Except for the equality test they use a tree of a few files: see smallTree. The build image is the real one;
// if the engine has none, making it takes a minute or two.
//
// What this machine's kernel cannot show, such as a cluster with cgroup version 2 alone, is tested in a guest, an emulated machine
// with Debian's kernel: see test/guest.
//
// # Settings
//
//   - SLIPWAY_CI=1: a test fails if a program that it needs is not installed. Otherwise it is skipped, and names the package.
//   - SLIPWAY_TARBALLS=FOLDER: tests that boot clusters use the tarballs in this folder instead of making a release.
//   - SLIPWAY_SOAK_KILLS=N: how many kills the soak test spreads over a run, 20 by default.
//
// # What must never be in here
//
// Imports of the toolchain's packages: what users cannot reach is tested beside the code. Parallel tests: they share two
// processors and one checkout.
package integration
