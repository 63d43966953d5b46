// Package bazel is the road that compiles with Bazel: rules_go builds the labels of a compilation, stamped and for its platform,
// and the binaries are copied out of Bazel's output folders.
//
// What Bazel needs to know is in the tree: .bazelrc has the flags, build/bazel the rules, and generated files the modules' versions
// and sums. So `bazel build --config=release //cmd/...` by hand makes the same binaries. A compile fails if the build information
// of a binary names another Go or another version of a module than cmd/go.mod: the generated files are then out of date.
//
// What must never be in here: where Bazel is from (package slipway.build/pkg/make/bazel), and what a release holds.
package bazel
