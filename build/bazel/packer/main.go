// The packer makes a release inside Bazel. A repository rule compiles it (packer.bzl). See package slipway.build/pkg/cli/packer.
package main

import "slipway.build/pkg/cli/packer"

func main() { packer.Main() }
