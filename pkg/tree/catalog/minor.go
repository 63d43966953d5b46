package catalog

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// minors are the minor versions of Kubernetes that slipway makes releases of. To add one, bump the tree to it, and see that its components
// compile, its generators make upstream's files, and its cluster passes the checks.
var minors = []string{"1.35", "1.36", "1.37"}

// SupportedMinors returns the minor versions of Kubernetes that slipway makes releases of, oldest first.
func SupportedMinors() []string { return slices.Clone(minors) }

// A MinorError is a version of Kubernetes that slipway makes no releases of.
type MinorError struct{ Version string }

func (e *MinorError) Error() string {
	return fmt.Sprintf("Kubernetes %s: this version of slipway makes releases of %s", e.Version, strings.Join(minors, ", "))
}

// CheckKubernetes returns a *[MinorError] if slipway makes no releases of a version of Kubernetes.
func CheckKubernetes(version string) error {
	if slices.Contains(minors, strings.TrimPrefix(semver.MajorMinor(version), "v")) {
		return nil
	}
	return &MinorError{version}
}
