// Package integration holds a release to what is promised of it, by the doors that users have: make, the slipway
// command, and what lies in _output afterwards. A test here runs the real thing over the real sources, and looks at
// the result with the tools that users look with: GNU tar, sha256sum, docker, the kernel that starts a binary.
//
//	make test-integration    what every change has to pass, in minutes
//	make soak                the same with more of everything, in hours
//
// # How it is put together
//
// All tests share one checkout of the sources as they are in the work tree (committed, so that it is a clean one),
// and one quick release that is made in it: see baseline. A test that changes that checkout or its _output ends by
// making the same release again, whose checksums have to be those of the first. Tests that need another checkout
// clone this one. Nothing is ever made in the work tree itself, and only the Go caches are shared with it: but for the
// soak test that begins without any.
//
// Most edge cases are looked at with kube-log-runner: it goes through everything that kube-apiserver goes through, and
// links in a second.
//
// Tests of the container road drive a real container engine, the one that the docker command finds, and compare with what
// that engine itself tells of containers. But for the equality test they use a tree of a few files: see smallTree. The
// build image is the real one, and is made if the engine has none: in a minute or two.
//
// What this machine's kernel cannot show, such as a cluster where there is cgroup version 2 alone, is looked at in a guest, an emulated
// machine with Debian's kernel: see test/guest.
//
// # Settings
//
//   - SLIPWAY_CI=1: a program that a test needs and that is not installed is a failure. Otherwise the test is skipped,
//     and says what to install.
//   - SLIPWAY_TARBALLS=FOLDER: tests that boot clusters take the tarballs there, and make no release for themselves.
//   - SLIPWAY_SOAK_KILLS=N: how many kills the soak test spreads over a run, 20 by default.
//
// # What must never be in here
//
// Imports of the toolchain's packages: what users cannot reach is tested beside the code. Tests that run at the same
// time: they share two processors and one checkout.
package integration
