// Package bazel finds the Bazel that a tree is pinned to (.bazelversion), and runs it.
//
// # Where it is from
//
//  1. bazel or bazelisk on PATH, if it says that it is the pinned version. Debian's says no version: its package's counts.
//  2. A root file system of its own, made of Debian packages by mmdebstrap at first use: the suite forky has Bazel and the rule
//     sets that the configuration "offline" needs. It lies in the user's cache folder, named by the hash of its recipe, and is
//     never changed once it is there. Only on Linux; as root, or where the kernel lets users have namespaces.
//
// A command enters the root by a mount namespace of its own and pivot_root. (Not by chroot: in one, the kernel lets nobody make
// user namespaces, and so Bazel would run its actions without a sandbox.) The tree, the Go, the module cache and other folders of
// the user's are there by the same names, so outputs are where a Bazel on PATH would have them.
//
// # The server
//
// Bazel leaves a server behind, which lives in the namespace of the command that started it and keeps that alive. Later commands
// have other namespaces, and reach it all the same: they have its network, its processes, and its files by the same names. A
// folder that is bound later would be hidden from it, so the list of folders is one of the server's startup options: where it
// differs, Bazel starts another server. `shutdown` stops it, as it always does.
//
// # What must never be in here
//
// What is built. Settings that are not the machine's: those are in .bazelrc, for everyone who runs Bazel.
package bazel
