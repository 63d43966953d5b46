package stamp

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// Compare orders versions. Semantic versioning gives build metadata no order, but a distribution counts its releases there:
//
//	v1.37.1 < v1.37.1+acme.2-rc.1 < v1.37.1+acme.2 < v1.37.1+acme.10 < v1.37.2
//
// Digits count as a number wherever they stand. A candidate comes before its release: rc or the like, after a number and a '-'. What is no
// version comes first.
func Compare(a, b string) int {
	am, ac := cutCandidate(semver.Build(a))
	bm, bc := cutCandidate(semver.Build(b))
	order := cmp.Or(semver.Compare(a, b), compareMetadata(am, bm))
	switch {
	case order != 0 || ac == bc:
		return order
	case ac == "":
		return 1
	case bc == "":
		return -1
	}
	return compareMetadata(ac, bc)
}

// words are what candidates are called.
const words = `(?i:alpha|beta|rc|pre)`

var (
	candidate  = regexp.MustCompile(`^(.*?[0-9])-(` + words + `(?:[^A-Za-z].*)?)$`)
	misspelled = regexp.MustCompile(`^\+(?:(.*?)[.-]|)(` + words + `(?:[^A-Za-z].*)?)$`)
)

// cutCandidate cuts what makes build metadata a candidate's off its end.
func cutCandidate(metadata string) (of, what string) {
	if m := candidate.FindStringSubmatch(metadata); m != nil {
		return m[1], m[2]
	}
	return metadata, ""
}

// IsCandidate reports whether a version is a candidate, of Kubernetes' release or of a distribution's.
func IsCandidate(version string) bool {
	_, what := cutCandidate(semver.Build(version))
	return what != "" || semver.Prerelease(version) != ""
}

var untagged = regexp.MustCompile(`^\+slipway\.[0-9]{14}\.[0-9a-f]+$`)

// IsUntagged reports whether a version is that of a commit without a tag. Nobody has called it a release, and the order of such versions among
// releases means nothing.
func IsUntagged(version string) bool { return untagged.MatchString(semver.Build(version)) }

// CheckCandidate refuses a candidate of which [Compare] would think that it comes after its release.
func CheckCandidate(version string) error {
	metadata := semver.Build(version)
	if _, what := cutCandidate(metadata); what != "" {
		return nil
	}
	m := misspelled.FindStringSubmatch(metadata)
	if m == nil {
		return nil
	}
	base := strings.TrimSuffix(version, metadata)
	return fmt.Errorf("version %s: a candidate must come before its release, so write %s", version, spell(base, m[1], m[2]))
}

// spell returns how a candidate of a release is written.
func spell(base, of, what string) string {
	switch {
	case of == "":
		of = "acme.1"
	case of[len(of)-1] < '0' || of[len(of)-1] > '9':
		of += ".1"
	}
	return fmt.Sprintf("%s+%s-%s", base, of, what)
}

// ForPackages returns a version as packages of Debian and rpm have it, which sort it as Compare does: a tilde comes before everything, and
// a minus would begin the revision.
//
//	v1.37.0-rc.1         1.37.0~rc.1
//	v1.37.0+acme.2-rc.1  1.37.0+acme.2~rc.1
//	v1.37.0+acme.2       1.37.0+acme.2
func ForPackages(version string) string {
	metadata := semver.Build(version)
	of, what := cutCandidate(metadata)
	if what != "" {
		of += "~" + what
	}
	base := strings.TrimPrefix(strings.TrimSuffix(version, metadata), "v")
	return strings.ReplaceAll(strings.Replace(base, "-", "~", 1)+of, "-", ".")
}

// compareMetadata compares part by part: numbers as numbers, which come before words. Less comes first.
func compareMetadata(a, b string) int {
	as, bs := runs(a), runs(b)
	for i := range min(len(as), len(bs)) {
		if order := compareRuns(as[i], bs[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(as), len(bs))
}

var run = regexp.MustCompile(`[0-9]+|[^0-9.]+|\.`)

// runs cuts build metadata into numbers, dots, and what is between them.
func runs(metadata string) []string { return run.FindAllString(strings.TrimPrefix(metadata, "+"), -1) }

func compareRuns(a, b string) int {
	isNumber := func(s string) bool { return s[0] >= '0' && s[0] <= '9' }
	switch {
	case a == b:
		return 0
	case a == "." || b == ".": // the shorter part comes first
		if a == "." {
			return -1
		}
		return 1
	case isNumber(a) && isNumber(b):
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case isNumber(a):
		return -1
	case isNumber(b):
		return 1
	}
	return strings.Compare(a, b)
}
