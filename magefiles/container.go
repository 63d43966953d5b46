//go:build mage

package main

import (
	"context"
	"fmt"
	"strings"
)

// Shell opens a shell in the build container, with the tree.
func Shell(ctx context.Context) error { return inContainer(ctx, "shell") }

// ReleaseInAContainer makes a whole release in the build container: unlike ROAD=container, packing and tests happen there, too.
func ReleaseInAContainer(ctx context.Context) error {
	return inContainer(ctx, "run", "--fetch=release-tars,release-images", "--", "make", "release")
}

// inContainer runs a subcommand that runs something in the build container.
func inContainer(ctx context.Context, command string, args ...string) error {
	if dryRun() {
		fmt.Println("slipway", command, strings.Join(args, " "))
		return nil
	}
	return slipway(ctx, command, args...)
}
