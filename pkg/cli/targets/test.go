package targets

import (
	"context"
	"os"
	"strings"

	"github.com/magefile/mage/mg"
	"github.com/magefile/mage/sh"

	"slipway.build/pkg/cli/generate"
	"slipway.build/pkg/cli/tests"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/self"
)

// Test runs the tree's own tests and Kubernetes' of what its patches touch, or those of WHAT=./cmd/... or
// WHAT=k8s.io/kubernetes/pkg/scheduler/... In slipway's own repository, it runs slipway's unit tests, with ROAD=container in the build
// container. It adds the flags in KUBE_RACE=-race and KUBE_TIMEOUT=-timeout=20m.
func Test(ctx context.Context) error {
	what, own, err := words()
	switch {
	case err != nil:
		return err
	case own && os.Getenv("ROAD") == "container":
		return orSay(ctx, "run", "--", "make", "test")
	case own && len(what) == 0:
		return tests.GoTest("./...", "-timeout=10m", "-vet=off") // make verify vets the tree, for which all that it imports has to be read, too
	case own:
		return tests.GoTest("./...", "-timeout=10m")
	case len(what) == 0:
		return slipway(ctx, "test", "--own", "--patched")
	}
	return slipway(ctx, "test", what...)
}

// TestIntegration runs Kubernetes' integration tests with the release's etcd: WHAT=k8s.io/kubernetes/test/integration/scheduler/...
// In slipway's own repository, without WHAT=, it builds real releases and tests them.
func TestIntegration(ctx context.Context) error {
	what, own, err := words()
	switch {
	case err != nil:
		return err
	case own:
		return tests.GoTest("./pkg/make/kubecross ./test/integration", "-tags=integration", "-p=1", "-timeout=80m", "-v")
	case len(what) == 0:
		return mg.Fatal(2, "name packages: make test-integration WHAT=k8s.io/kubernetes/test/integration/scheduler/...")
	}
	return slipway(ctx, "test", append([]string{"--integration"}, what...)...)
}

// TestCmd runs upstream's kubectl command tests with the tree's programs: all suites, or those of WHAT="namespace kubectl_version".
func TestCmd(ctx context.Context) error {
	return orSay(ctx, append([]string{"test-cmd"}, strings.Fields(os.Getenv("WHAT"))...)...)
}

// Lint looks for mistakes in the code of the tree, or of the packages that WHAT= names, and in what patches change in Kubernetes, for each
// platform of a release or of KUBE_BUILD_PLATFORMS.
func Lint() error {
	args := append([]string{"lint"}, strings.Fields(os.Getenv("WHAT"))...)
	if tests.DryRun() {
		return tests.Say("slipway", args...)
	}
	return sh.RunV("_output/bin/slipway", args...) // the program with these targets links no analyzers
}

// Update regenerates the generated files: code of API packages, files for make and Bazel, and in slipway's own repository its documents; or
// those that WHAT= names: generated-code, generated-files, BUILD-files.
func Update(ctx context.Context) error {
	what, err := generate.UpdatesOf(strings.Fields(os.Getenv("WHAT")))
	if err != nil {
		return err
	}
	for _, name := range what {
		switch {
		case name == generate.Code:
			err = GeneratedFiles(ctx)
		case tests.DryRun():
			err = tests.Say("generate", name)
		case name == generate.Files:
			err = tree.UpdateFiles(ctx)
		case name == generate.BuildFiles:
			err = tree.UpdateBuildFiles(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// GeneratedFiles generates the code of API packages: deep copies, defaults, conversions, OpenAPI definitions, clients.
func GeneratedFiles(ctx context.Context) error { return slipway(ctx, "generate") }

// UpdateDebianLocks updates images/*/debian.lock to the versions of Debian's packages and security fixes on the mirrors.
func UpdateDebianLocks(ctx context.Context) error {
	if tests.DryRun() {
		return tests.Say("generate", "images/*/debian.lock")
	}
	return generate.DebianLocks(ctx, ".", debian.SourcesFrom(os.Getenv), os.Stdout)
}

// Verify checks formatting, lints, spelling, and that generated files are up to date; or only what WHAT= names: WHAT="gofmt staticcheck".
func Verify(ctx context.Context) error { return verify(ctx, strings.Fields(os.Getenv("WHAT"))) }

// QuickVerify checks what takes seconds: formatting, spelling, shell scripts, and most generated files.
func QuickVerify(ctx context.Context) error { return verify(ctx, generate.QuickChecks()) }

func verify(ctx context.Context, names []string) error {
	checks, err := generate.ChecksOf(names)
	if err != nil {
		return err
	}
	if tests.DryRun() {
		return tests.Say("check", strings.Join(checks, " "))
	}
	return tree.Verify(ctx, checks, os.Stdout)
}

// words returns those of WHAT=, and whether it is slipway's own packages that are to be tested.
func words() (what []string, own bool, err error) {
	what = strings.Fields(os.Getenv("WHAT"))
	own = self.IsOwn(".")
	if own && len(what) > 0 {
		own, err = tests.OfTree(".", what)
	}
	return what, own, err
}

// Check is the same as make test.
func Check(ctx context.Context) error { return Test(ctx) }
