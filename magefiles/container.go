//go:build mage

package main

import "context"

// Shell opens a shell in the build container, with the tree.
func Shell(ctx context.Context) error { return orSay(ctx, "shell") }

// ReleaseInAContainer makes a whole release in the build container: unlike ROAD=container, packing and tests run there, too.
func ReleaseInAContainer(ctx context.Context) error {
	return orSay(ctx, "run", "--fetch=release-tars,release-images", "--", "make", "release")
}
