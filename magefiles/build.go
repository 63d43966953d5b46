//go:build mage

// The targets of make: what a target does is its comment, how is in package slipway.build/pkg/cli.
package main

import (
	"context"
	"os"
	"strings"

	"slipway.build/pkg/cli"
)

// All compiles the components for this machine, or those that WHAT= names.
func All(ctx context.Context) error {
	return slipway(ctx, "build", strings.Fields(os.Getenv("WHAT"))...)
}

// Cross compiles the components for every platform, or those of KUBE_BUILD_PLATFORMS=.
func Cross(ctx context.Context) error {
	return slipway(ctx, "build", append(strings.Fields(os.Getenv("WHAT")), "--all-platforms")...)
}

// Slipway compiles the slipway command into _output/bin.
func Slipway(ctx context.Context) error {
	return goTool("build", "-o", "_output/bin/slipway", ".")
}

// Clean removes everything that was made: _output, and what the tree has in a container engine. The Go caches stay.
func Clean(ctx context.Context) error { return slipway(ctx, "clean") }

// slipway runs a subcommand of the command line; under `make -n`, one that makes something only prints its plan.
func slipway(ctx context.Context, command string, args ...string) error {
	if dryRun() {
		args = append(args, "--dry-run")
	}
	return cli.Run(ctx, cli.Std(), append([]string{command}, args...)...)
}

// dryRun tells `make -n`: the first word of MAKEFLAGS holds make's single-letter options.
func dryRun() bool {
	letters, _, _ := strings.Cut(os.Getenv("MAKEFLAGS"), " ")
	return !strings.HasPrefix(letters, "-") && !strings.Contains(letters, "=") && strings.Contains(letters, "n")
}
