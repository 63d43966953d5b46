package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// A SkewError is a pair of versions between which Kubernetes allows no upgrade.
type SkewError struct{ From, To, Reason string }

func (e SkewError) Error() string {
	return fmt.Sprintf("no upgrade leads from %s to %s: %s", e.From, e.To, e.Reason)
}

// checkSkew returns an error unless a cluster of one version can become one of the other: of the same minor version, in either
// direction, or of the next one. See https://kubernetes.io/releases/version-skew-policy.
func checkSkew(from, to string) error {
	refuse := func(reason string) error { return SkewError{from, to, reason} }
	oldMajor, oldMinor, ok := minor(from)
	major, next, known := minor(to)
	switch {
	case !ok || !known:
		return refuse("they are not versions of Kubernetes")
	case from == to:
		return refuse("releases with the same version cannot be told apart")
	case major != oldMajor:
		return refuse("the major version differs")
	case next < oldMinor:
		return refuse("Kubernetes does not go back to an earlier minor version")
	case next > oldMinor+1:
		return refuse(fmt.Sprintf("Kubernetes takes one minor version at a time, and v%d.%d comes first", major, oldMinor+1))
	}
	return nil
}

// minor returns the first two numbers of a version.
func minor(version string) (major, minor int, ok bool) {
	if !semver.IsValid(version) {
		return 0, 0, false
	}
	a, b, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	major, errA := strconv.Atoi(a)
	minor, errB := strconv.Atoi(b)
	return major, minor, errA == nil && errB == nil
}

// newer returns the later one of two versions.
func newer(a, b string) string {
	if semver.Compare(a, b) < 0 {
		return b
	}
	return a
}
