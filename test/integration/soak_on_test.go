//go:build integration && soak

package integration

// soak tells tests that there is time for more of the same.
const soak = true
