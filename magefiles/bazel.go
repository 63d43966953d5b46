//go:build mage

package main

import (
	"context"

	"github.com/magefile/mage/mg"
)

// Bazel has the targets that run the tree's Bazel.
type Bazel mg.Namespace

// Build compiles every component with Bazel, as `bazel build //cmd/...` does where Bazel is installed.
func (Bazel) Build(ctx context.Context) error {
	return bazel(ctx, "--", "build", "--config=release", "//cmd/...")
}

// Release makes the tarballs of quick-release with Bazel, whose remote cache can hold them, in _output/bazel/release-tars.
func (Bazel) Release(ctx context.Context) error {
	return bazel(ctx, "--output=_output/bazel/release-tars", "--", "build", "--config=release", "//release:release-tars")
}

// Test runs the tests that Bazel has targets for.
func (Bazel) Test(ctx context.Context) error { return bazel(ctx, "--", "test", "//...") }

// TestIntegration compares what Bazel makes with what the local road makes.
func (Bazel) TestIntegration() error {
	return goTest("./test/integration", "-tags=integration,soak", "-run=Bazel", "-timeout=60m", "-v")
}

func bazel(ctx context.Context, args ...string) error {
	return orSay(ctx, append([]string{"bazel"}, args...)...)
}
