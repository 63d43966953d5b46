//go:build mage

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/magefile/mage/sh"

	"slipway.build/pkg/cli/generate"
)

// Test runs the unit tests, or those of WHAT=./pkg/mechanism/archive, with ROAD=container in the build container. KUBE_RACE=-race and
// KUBE_TIMEOUT=-timeout=5m are handed on.
func Test(ctx context.Context) error {
	if os.Getenv("ROAD") == "container" {
		return inContainer(ctx, "run", "--", "make", "test")
	}
	return goTest("./...", "-timeout=5m")
}

// TestIntegration builds real releases and checks what must hold of them.
func TestIntegration(ctx context.Context) error {
	return goTest("./pkg/build/kubecross ./test/integration", "-tags=integration", "-p=1", "-timeout=75m", "-v")
}

// Bench measures speed as ratios of two things done in turn, and prints a table.
func Bench(ctx context.Context) error {
	return goTool("run", "./test/bench")
}

// Soak repeats what must hold when things go wrong many times: kills, clones, cold builds. It takes hours.
func Soak(ctx context.Context) error {
	return goTest("./test/integration", "-tags=integration,soak", "-timeout=6h", "-v")
}

// Update regenerates what is made from the sources: command-line reference, completions, what Bazel reads.
func Update(ctx context.Context) error {
	if dryRun() {
		fmt.Println("generate", strings.Join(generate.Folders(), ", "), "and BUILD files")
		return nil
	}
	return generate.Update(ctx, ".")
}

// UpdateDebianLocks takes, into images/*/debian.lock, the versions of Debian's packages that the mirror has now.
func UpdateDebianLocks(ctx context.Context) error {
	if dryRun() {
		fmt.Println("generate images/*/debian.lock")
		return nil
	}
	return generate.DebianLocks(ctx, ".", os.Getenv("SLIPWAY_DEBIAN_MIRROR"), os.Stdout)
}

// Verify checks formatting, lints, and that what is generated is up to date.
func Verify(ctx context.Context) error {
	if dryRun() {
		fmt.Println("check", strings.Join(generate.Checks(), "; "))
		return nil
	}
	return generate.Verify(ctx, ".", os.Stdout)
}

// goTest runs tests: of the packages that WHAT= names, else of some.
func goTest(packages string, flags ...string) error {
	args := append([]string{"test"}, flags...)
	args = append(args, strings.Fields(os.Getenv("KUBE_RACE")+" "+os.Getenv("KUBE_TIMEOUT"))...)
	what := strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		what = strings.Fields(packages)
	}
	return goTool(append(args, what...)...)
}

// goTool runs the Go on PATH with the user's own settings, except where make gives it those of a release: for slipway.
func goTool(args ...string) error {
	if dryRun() {
		fmt.Println("go", strings.Join(args, " "))
		return nil
	}
	return sh.RunV("go", args...)
}
