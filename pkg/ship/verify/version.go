package verify

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
)

// compareVersions orders two versions. Semantic versioning gives build metadata no order, but a distribution counts its releases there: so
// v1.37.1 < v1.37.1+acme.2 < v1.37.1+acme.10 < v1.37.2.
func compareVersions(a, b string) (int, error) {
	for _, v := range []string{a, b} {
		if !semver.IsValid(v) {
			return 0, badrequest.Mark(fmt.Errorf("%q is not a version like v1.37.1+acme.2", v))
		}
	}
	return cmp.Or(semver.Compare(a, b), compareBuilds(semver.Build(a), semver.Build(b))), nil
}

// compareBuilds orders build metadata as semantic versioning orders the parts of a pre-release. None comes first.
func compareBuilds(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	as, bs := strings.Split(strings.TrimPrefix(a, "+"), "."), strings.Split(strings.TrimPrefix(b, "+"), ".")
	for i := range min(len(as), len(bs)) {
		n, err1 := strconv.ParseUint(as[i], 10, 64)
		m, err2 := strconv.ParseUint(bs[i], 10, 64)
		var order int
		switch {
		case err1 == nil && err2 == nil:
			order = cmp.Compare(n, m)
		case err1 == nil: // numbers come before words
			order = -1
		case err2 == nil:
			order = 1
		default:
			order = strings.Compare(as[i], bs[i])
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(as), len(bs))
}
