//go:build mage

// The targets of make. A target's comment is its help. Package slipway.build/pkg/cli does the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway.build/pkg/cli"
	"slipway.build/pkg/cli/generate"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/relink"
)

// Mage writes main, so what comes first in it is here. A variable with a value that means nothing stops every target before it begins.
func init() {
	relink.Main()
	if err := session.CheckVariables(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "slipway:", err)
		os.Exit(2)
	}
	session.SayUnread(os.Getenv, os.Stderr)
}

// Default is the target of mage, and of make, without arguments.
var Default = All

// Aliases maps make's names of targets, which mage would spell without hyphens. `make update` checks them.
var Aliases = map[string]any{
	"quick-release":          QuickRelease,
	"release-images":         ReleaseImages,
	"quick-release-images":   QuickReleaseImages,
	"package-tarballs":       PackageTarballs,
	"release-in-a-container": ReleaseInAContainer,
	"generated_files":        GeneratedFiles,
	"bench-peers":            BenchPeers,
	"test-cmd":               TestCmd,
	"test-e2e-node":          TestE2eNode,
	"test-integration":       TestIntegration,
	"update-debian-locks":    UpdateDebianLocks,
	"cluster-up":             Cluster.Up,
	"cluster-down":           Cluster.Down,
	"cluster-verify":         Cluster.Verify,
	"bazel-build":            Bazel.Build,
	"bazel-release":          Bazel.Release,
	"bazel-test":             Bazel.Test,
	"bazel-test-integration": Bazel.TestIntegration,
	"quick-verify":           QuickVerify,
	"cross-in-a-container":   CrossInAContainer,

	// Other names that Kubernetes' make has.
	"check":              Test,
	"package":            PackageTarballs,
	"release-skip-tests": QuickRelease,
}

// All compiles the components for this machine, or those that WHAT= names.
func All(ctx context.Context) error {
	return slipway(ctx, "build", strings.Fields(os.Getenv("WHAT"))...)
}

// Component compiles one component for this machine: make kubectl. `slipway catalog` lists them.
func Component(ctx context.Context, name string) error {
	return generate.Goal(".", name, slipway(ctx, "build", name))
}

// Cross compiles the components for every platform, or those of KUBE_BUILD_PLATFORMS=.
func Cross(ctx context.Context) error {
	return slipway(ctx, "build", append(strings.Fields(os.Getenv("WHAT")), "--all-platforms")...)
}

// Slipway compiles the slipway command into _output/bin.
func Slipway() error { return goTool("build", "-o", "_output/bin/slipway", ".") }

// Clean removes everything that was made: _output, and what the tree has in a container engine. The Go caches stay.
func Clean(ctx context.Context) error { return slipway(ctx, "clean") }

// Help lists the targets.
func Help() error {
	if name := os.Getenv("WHAT"); name != "" {
		return generate.HelpFor(os.Stdout, "magefiles", name)
	}
	return generate.Help(os.Stdout, "magefiles")
}

// slipway runs a subcommand of slipway. Under `make -n`, the subcommand only prints its plan.
func slipway(ctx context.Context, command string, args ...string) error {
	if dryRun() {
		args = append(args, "--dry-run")
	}
	return run(ctx, append([]string{command}, args...)...)
}

// orSay runs a subcommand of slipway that has no plan. Under `make -n`, it prints the command line.
func orSay(ctx context.Context, args ...string) error {
	if dryRun() {
		return say("slipway", args...)
	}
	return run(ctx, args...)
}

// run runs a subcommand of slipway. What it has printed of its error is not printed again.
func run(ctx context.Context, args ...string) error {
	s := session.Std()
	s.StaleForBazel = generate.StaleForBazel
	err := cli.Run(ctx, s, args...)
	if exit, ok := errors.AsType[*cli.ExitError](err); ok && exit.Shown {
		os.Exit(exit.Code)
	}
	return err
}

// dryRun reports whether this is `make -n`: the first word of MAKEFLAGS holds make's single-letter options.
func dryRun() bool {
	letters, _, _ := strings.Cut(os.Getenv("MAKEFLAGS"), " ")
	return !strings.HasPrefix(letters, "-") && !strings.Contains(letters, "=") && strings.Contains(letters, "n")
}
