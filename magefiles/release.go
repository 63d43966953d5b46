//go:build mage

package main

import (
	"context"
	"os"
	"strings"

	"github.com/magefile/mage/mg"

	"slipway.build/pkg/cli/session"
)

// Release runs the unit tests, and Kubernetes' own of what the tree's patches touch, unless KUBE_RELEASE_RUN_TESTS=n. Then it builds the
// tarballs of every platform.
func Release(ctx context.Context) error {
	tests, err := session.ReleaseRunsTests.Read(os.Getenv)
	if err != nil {
		return err
	}
	if tests {
		mg.CtxDeps(ctx, Test)
		if err := slipway(ctx, "test", "--patched", "--road=local"); err != nil {
			return err
		}
	}
	return slipway(ctx, "release")
}

// QuickRelease builds the tarballs for this machine's linux platform, with checksums: the main job.
func QuickRelease(ctx context.Context) error { return slipway(ctx, "release", "--quick") }

// PackageTarballs builds the tarballs of every platform, or those of KUBE_BUILD_PLATFORMS=, without tests.
func PackageTarballs(ctx context.Context) error { return slipway(ctx, "release") }

// Source packs the tree with everything that a release is made of; SOURCE_FLAGS="--host linux/amd64" is for some machines only.
func Source(ctx context.Context) error {
	return slipway(ctx, "source", strings.Fields(os.Getenv("SOURCE_FLAGS"))...)
}

// ReleaseImages builds the component images of every server platform.
func ReleaseImages(ctx context.Context) error { return slipway(ctx, "images", "--all-platforms") }

// QuickReleaseImages builds the component images for this machine's linux platform.
func QuickReleaseImages(ctx context.Context) error { return slipway(ctx, "images") }
