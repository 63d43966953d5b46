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

// Test runs the unit tests, or those of WHAT=./pkg/mechanism/archive, with ROAD=container in the build container. The flags in
// KUBE_RACE=-race and KUBE_TIMEOUT=-timeout=5m are added.
func Test(ctx context.Context) error {
	if os.Getenv("ROAD") == "container" {
		return orSay(ctx, "run", "--", "make", "test")
	}
	return goTest("./...", "-timeout=5m")
}

// TestIntegration builds real releases and checks what must hold of them.
func TestIntegration() error {
	return goTest("./pkg/build/kubecross ./test/integration", "-tags=integration", "-p=1", "-timeout=75m", "-v")
}

// Bench measures speed as ratios of two things done in turn, and prints a table.
func Bench() error { return goTool("run", "./test/bench") }

// Soak repeats what must hold when things go wrong many times: kills, clones, cold builds. It takes hours.
func Soak() error {
	return goTest("./test/integration", "-tags=integration,soak", "-timeout=6h", "-v")
}

// Update regenerates what is made from the sources: command-line reference, completions, what make and Bazel read.
func Update(ctx context.Context) error {
	if dryRun() {
		return say("generate", strings.Join(generate.Paths(), ", "), "and BUILD files")
	}
	return generate.Update(ctx, ".")
}

// UpdateDebianLocks writes the versions of Debian's packages that the mirror has now into images/*/debian.lock.
func UpdateDebianLocks(ctx context.Context) error {
	if dryRun() {
		return say("generate", "images/*/debian.lock")
	}
	return generate.DebianLocks(ctx, ".", os.Getenv("SLIPWAY_DEBIAN_MIRROR"), os.Stdout)
}

// Verify checks formatting, lints, spelling, and that what is generated is up to date.
func Verify(ctx context.Context) error {
	if dryRun() {
		return say("check", strings.Join(generate.Checks(), "; "))
	}
	return generate.Verify(ctx, ".", os.Stdout)
}

// goTest tests the packages that WHAT= names, or else the given ones.
func goTest(packages string, flags ...string) error {
	args := append([]string{"test"}, flags...)
	args = append(args, strings.Fields(os.Getenv("KUBE_RACE")+" "+os.Getenv("KUBE_TIMEOUT"))...)
	what := strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		what = strings.Fields(packages)
	}
	return goTool(append(args, what...)...)
}

// goTool runs the Go on PATH. Its settings are the user's own, except for the target slipway, where make has set a release's.
func goTool(args ...string) error {
	if dryRun() {
		return say("go", args...)
	}
	return sh.RunV("go", args...)
}

// say prints what a target would do.
func say(what string, args ...string) error {
	_, err := fmt.Println(what, strings.Join(args, " "))
	return err
}
