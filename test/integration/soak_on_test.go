//go:build integration && soak

package integration

// soak reports whether there is time for longer tests.
const soak = true
