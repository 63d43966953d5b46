package published

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
)

// counted matches build metadata that Go orders as releases are counted: a name, then numbers.
var counted = regexp.MustCompile(`^[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*(\.(0|[1-9][0-9]*))+$`)

// Release returns the name and number of a release of a distribution by its version: acme.1 of v1.37.2+acme.1.
func Release(version string) (string, error) {
	metadata := strings.TrimPrefix(semver.Build(version), "+")
	if !counted.MatchString(metadata) {
		return "", badrequest.Mark(&VersionError{Version: version, Base: strings.TrimSuffix(version, semver.Build(version))})
	}
	return metadata, nil
}

// A VersionError says that modules cannot have the version of a tree.
type VersionError struct{ Version, Base string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("modules cannot have the version %s: Go orders releases by a name and numbers, as in %s+acme.1", e.Version, e.Base)
}

// next returns the version of a module in a release of a distribution: above upstream's, and below all later ones of upstream.
func next(upstream, release string) string {
	if semver.Prerelease(upstream) != "" {
		return upstream + ".0." + release
	}
	minor, patch := semver.MajorMinor(upstream), upstream[strings.LastIndex(upstream, ".")+1:]
	n, _ := strconv.Atoi(patch) // a go.mod has only canonical versions
	return fmt.Sprintf("%s.%d-0.%s", minor, n+1, release)
}
