package targets

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/magefile/mage/mg"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/variable"
)

// Release runs the unit tests, and Kubernetes' own of what the tree's patches touch, unless KUBE_RELEASE_RUN_TESTS=n. With y, it runs all
// unit and integration tests of Kubernetes. Then it builds the tarballs of every platform, with debs and rpms.
func Release(ctx context.Context) error {
	return release(ctx, session.ReleaseRunsTests, session.FastBuild)
}

// QuickRelease builds the tarballs for this machine's linux platform, with checksums: the main job. KUBE_FASTBUILD=false is for every
// platform, SLIPWAY_PACKAGES=true adds debs and rpms, and KUBE_RELEASE_RUN_TESTS=y runs the tests that it runs for release.
func QuickRelease(ctx context.Context) error {
	tests, fast := session.ReleaseRunsTests, session.FastBuild
	tests.Default, fast.Default = false, true
	return release(ctx, tests, fast)
}

// release tests as the variables say, and makes a release.
func release(ctx context.Context, runsTests, isFast variable.Switch) error {
	tests, err := runsTests.Read(os.Getenv)
	if err != nil {
		return err
	}
	fast, err := isFast.Read(os.Getenv)
	if err != nil {
		return err
	}
	if tests {
		mg.CtxDeps(ctx, Test)
		which := [][]string{{"--patched"}}
		if os.Getenv(runsTests.Name) != "" {
			which = [][]string{{"--all"}, {"--integration", "k8s.io/kubernetes/test/integration/..."}}
		}
		for _, flags := range which {
			if err := slipway(ctx, "test", append(flags, "--road=local")...); err != nil {
				return err
			}
		}
	}
	packages := session.Packages
	packages.Default = !fast
	packed, err := packages.Read(os.Getenv)
	if err != nil {
		return err
	}
	return slipway(ctx, "release", fmt.Sprintf("--quick=%t", fast), fmt.Sprintf("--api=%t", !fast), fmt.Sprintf("--packages=%t", packed))
}

// PackageTarballs builds the tarballs of every platform, or those of KUBE_BUILD_PLATFORMS=, without tests.
func PackageTarballs(ctx context.Context) error { return slipway(ctx, "release", "--api") }

// Source packs the tree with everything that a release is made of; SOURCE_FLAGS="--host linux/amd64" is for some machines only.
func Source(ctx context.Context) error {
	return slipway(ctx, "source", strings.Fields(os.Getenv("SOURCE_FLAGS"))...)
}

// Api writes what the API is, as files: OpenAPI and discovery documents, in _output/api.
func Api(ctx context.Context) error { return slipway(ctx, "api") }

// ReleaseImages builds the component images of every server platform.
func ReleaseImages(ctx context.Context) error { return slipway(ctx, "images", "--all-platforms") }

// QuickReleaseImages builds the component images for this machine's linux platform.
func QuickReleaseImages(ctx context.Context) error { return slipway(ctx, "images") }

// Package is the same as make package-tarballs.
func Package(ctx context.Context) error { return PackageTarballs(ctx) }

// ReleaseSkipTests is the same as make quick-release.
func ReleaseSkipTests(ctx context.Context) error { return QuickRelease(ctx) }
