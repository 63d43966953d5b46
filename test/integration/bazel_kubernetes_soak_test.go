//go:build integration && soak && linux

package integration

import (
	"slices"
	"testing"
)

func TestStagingUnitTestsOfAByBazel(t *testing.T) { byBazel(t, "k8s.io/a") }

func TestStagingUnitTestsOfOthersByBazel(t *testing.T) {
	byBazel(t, slices.Concat(stagingOfK, letters("k8s.io/", "bcdefghijlmnopqrstuvwxyz"))...)
}

func TestUnitTestsOfPackagesToKByBazel(t *testing.T) {
	byBazel(t, letters("k8s.io/kubernetes/pkg/", "abcdefghij")...)
}

func TestUnitTestsOfPackagesFromKByBazel(t *testing.T) {
	byBazel(t, letters("k8s.io/kubernetes/pkg/", "klmnopqrstuvwxyz")...)
}

func TestUnitTestsOfOtherFoldersByBazel(t *testing.T) {
	byBazel(t, slices.Concat(letters("k8s.io/kubernetes/", "abcdefghijklmnoqrstuvwxyz"),
		letters("k8s.io/kubernetes/p", "abcdefghijlmnopqrstuvwxyz"))...)
}

// byBazel tests packages by Bazel, as far as go list finds them, and removes what it made. The prefixes of all tests are those of all
// packages.
func byBazel(t *testing.T, prefixes ...string) {
	tr := bazelTree(t)
	t.Cleanup(func() { tr.bazel(t, "clean") })
	failAsDocumented(t, tr, []string{"testing.md", "bazel-road.md"}, append([]string{"-bazel", "-batch=100"}, prefixes...)...)
}
