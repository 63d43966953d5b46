// Package bazel is the road over Bazel: rules_go compiles the targets of a compilation by its labels, stamped and for its
// platform, and the binaries are taken out of Bazel's output folders.
//
// What Bazel is told is in the tree: .bazelrc has the flags, build/bazel the rules, and generated files the modules' versions and
// sums. So `bazel build --config=release //cmd/...` by hand makes the same binaries. A binary whose build information names
// another version of a module than cmd/go.mod, or another Go, fails the compile: the files are then not what they were
// generated from.
//
// What must never be in here: where Bazel is from (package slipway.build/pkg/build/bazel), and what a release holds.
package bazel
