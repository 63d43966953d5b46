package targets

import (
	"context"
	"os"
)

// Shell opens a shell in the build container, with the tree.
func Shell(ctx context.Context) error { return orSay(ctx, "shell") }

// CrossInAContainer compiles the components for every platform in the build container.
func CrossInAContainer(ctx context.Context) error {
	return orSay(ctx, "run", "--fetch=local/bin", "--", "make", "cross")
}

// ReleaseInAContainer makes a full release in the build container: unlike with ROAD=container, packing and tests also run there.
// Inside any container, it makes the release in place.
func ReleaseInAContainer(ctx context.Context) error {
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} { // Docker's and Podman's
		if _, err := os.Stat(name); err == nil {
			return Release(ctx)
		}
	}
	return orSay(ctx, "run", "--fetch=release-tars,release-images", "--", "make", "release")
}
