// Package bazel finds the Bazel that a tree is pinned to by .bazelversion, and runs it.
//
// # Where it comes from
//
//  1. bazel or bazelisk on PATH, if its version is the pinned one. Debian's Bazel reports no version; that of its package
//     counts.
//  2. A root file system of Debian packages, which mmdebstrap makes at first use: the suite forky has Bazel and the rule
//     sets that the configuration "offline" needs. The root is in the user's cache folder, named by the hash of its recipe,
//     and never changes. It needs Linux, and root or a kernel that lets users make namespaces.
//
// A command enters the root by a mount namespace of its own and pivot_root. (With chroot, the kernel lets nobody make user
// namespaces, so Bazel would run its actions without a sandbox.) The tree, the Go, the module cache and other folders of
// the user have the same paths in the root, so outputs are where a Bazel on PATH puts them.
//
// # The server
//
// Bazel starts a server, which lives in the namespace of the command that started it and keeps that alive. Later commands
// have other namespaces and can still reach the server: they share network, processes and file paths. The server cannot see
// a folder that is bound later, so the list of folders is one of its startup options: if the list differs, Bazel starts
// another server. `shutdown` stops the server, as usual.
//
// # What must never be in here
//
// What is built. Settings that are not the machine's: .bazelrc has those, for everyone who runs Bazel.
package bazel
