package cluster

import (
	"fmt"

	"golang.org/x/mod/semver"
)

// checkSkew returns an error unless Kubernetes allows an upgrade: to a version with the same minor number, in either direction, or to one
// with the next. See https://kubernetes.io/releases/version-skew-policy.
func checkSkew(from, to string) error {
	oldMajor, oldMinor, ok := minor(from)
	major, next, okTo := minor(to)
	reason := ""
	switch {
	case !ok || !okTo:
		reason = "they are not versions of Kubernetes"
	case from == to:
		reason = "releases with the same version cannot be told apart"
	case major != oldMajor:
		reason = "the major version differs"
	case next < oldMinor:
		reason = "Kubernetes does not go back to an earlier minor version"
	case next > oldMinor+1:
		reason = fmt.Sprintf("Kubernetes takes one minor version at a time, and v%d.%d comes first", major, oldMinor+1)
	default:
		return nil
	}
	return fmt.Errorf("no upgrade leads from %s to %s: %s", from, to, reason)
}

// minor returns the first two numbers of a version.
func minor(version string) (major, minor int, ok bool) {
	n, err := fmt.Sscanf(semver.MajorMinor(version), "v%d.%d", &major, &minor)
	return major, minor, n == 2 && err == nil
}

// newer returns the later one of two versions.
func newer(a, b string) string {
	if semver.Compare(a, b) < 0 {
		return b
	}
	return a
}
