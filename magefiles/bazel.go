//go:build mage

package main

import (
	"context"
	"fmt"
	"strings"
)

// BazelBuild compiles every component with Bazel: what `bazel build //cmd/...` does where Bazel is installed.
func BazelBuild(ctx context.Context) error {
	return bazel(ctx, "--", "build", "--config=release", "//cmd/...")
}

// BazelRelease makes the tarballs of quick-release inside of Bazel, which a remote cache can hold, in _output/bazel/release-tars.
func BazelRelease(ctx context.Context) error {
	return bazel(ctx, "--output=_output/bazel/release-tars", "--", "build", "--config=release", "//release:release-tars")
}

// BazelTest runs what has Bazel tests.
func BazelTest(ctx context.Context) error { return bazel(ctx, "--", "test", "//...") }

// BazelTestIntegration holds what Bazel makes against what the local road makes.
func BazelTestIntegration(context.Context) error {
	return goTest("./test/integration", "-tags=integration,soak", "-run=Bazel", "-timeout=60m", "-v")
}

// bazel runs the tree's Bazel.
func bazel(ctx context.Context, args ...string) error {
	if dryRun() {
		fmt.Println("slipway bazel", strings.Join(args, " "))
		return nil
	}
	return slipway(ctx, "bazel", args...)
}
