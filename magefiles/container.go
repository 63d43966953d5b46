//go:build mage

package main

import "context"

// Shell opens a shell in the build container, with the tree.
func Shell(ctx context.Context) error { return orSay(ctx, "shell") }

// ReleaseInAContainer makes a full release in the build container: unlike with ROAD=container, packing and tests also run there.
func ReleaseInAContainer(ctx context.Context) error {
	return orSay(ctx, "run", "--fetch=release-tars,release-images", "--", "make", "release")
}
