package stamp

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// A field is one part of a Stamp, with its name in the environment and in a version file.
type field struct {
	key string
	get func(Stamp) string         // "" if it is not set
	set func(*Stamp, string) error // refuses malformed values
}

// fields has the order of a version file.
var fields = []field{
	text("KUBE_GIT_VERSION", func(s *Stamp) *string { return &s.Version }, isSemver, "a semantic version such as v1.36.3 or v1.36.3+acme.1"),
	text("KUBE_GIT_COMMIT", func(s *Stamp) *string { return &s.Commit }, match("[0-9a-f]{7,64}"), "7 to 64 digits of 0-9 and a-f"),
	text("KUBE_GIT_TREE_STATE", func(s *Stamp) *string { return &s.TreeState }, match("clean|dirty|archive"), "clean, dirty or archive"),
	text("KUBE_GIT_MAJOR", func(s *Stamp) *string { return &s.Major }, match("[0-9]+"), "a number"),
	text("KUBE_GIT_MINOR", func(s *Stamp) *string { return &s.Minor }, match("[0-9]+[+]?"), `a number, with or without a "+"`),
	{"SOURCE_DATE_EPOCH", getDate, setDate},
}

func text(key string, of func(*Stamp) *string, valid func(string) bool, want string) field {
	return field{key, func(s Stamp) string { return *of(&s) }, func(s *Stamp, value string) error {
		if !valid(value) {
			return fmt.Errorf("%q is not %s", value, want)
		}
		*of(s) = value
		return nil
	}}
}

func match(pattern string) func(string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString
}

// isSemver is like semver.IsValid, but refuses the shorthands v1 and v1.2.
func isSemver(v string) bool {
	return semver.IsValid(v) && semver.Canonical(v)+semver.Build(v) == v
}

// lastSecond is the end of the year 9999. RFC 3339 has no form for later times.
const lastSecond = 253402300799

func getDate(s Stamp) string {
	if s.Date.IsZero() {
		return ""
	}
	return strconv.FormatInt(s.Date.Unix(), 10)
}

func setDate(s *Stamp, value string) error {
	seconds, err := strconv.ParseUint(value, 10, 63)
	if err != nil || seconds > lastSecond {
		return fmt.Errorf("%q is not a number of seconds since 1970-01-01 00:00:00 UTC", value)
	}
	s.Date = time.Unix(int64(seconds), 0).UTC()
	return nil
}

// maxTag is the maximum length of a container image's tag, in characters.
const maxTag = 128

// admit reports whether a version can be a version of base.
func admit(version, base string) error {
	of, pre := semver.Canonical(version), strings.TrimPrefix(semver.Prerelease(version), "-")
	switch {
	case pre != "" && of != base:
		right := strings.TrimSuffix(of, "-"+pre) + "+" + pre
		if CheckCandidate(right) != nil {
			right = spell(strings.TrimSuffix(of, "-"+pre), "", pre)
		}
		return fmt.Errorf("version %s: a pre-release comes before its release, and kubeadm would ask for the images "+
			"of an older patch; use build metadata: %s", version, right)
	case of != base:
		return fmt.Errorf("version %s: it is a version of Kubernetes %s, and the tree is of %s", version, of, base)
	}
	if err := CheckCandidate(version); err != nil {
		return err
	}
	if n := len(imageTag(version)); n > maxTag {
		return fmt.Errorf("version %s has %d characters, and an image's tag can have only %d", version, n, maxTag)
	}
	return nil
}

// majorMinor returns the major and minor version of a version.
func majorMinor(version string) (major, minor string) {
	major, minor, _ = strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	if semver.Prerelease(version) != "" {
		minor += "+"
	}
	return major, minor
}

// fill copies fields that s lacks from other. Major and minor are copied only together with their version.
func (s *Stamp) fill(other Stamp) {
	if s.Version != "" {
		other.Major, other.Minor = "", ""
	}
	for _, f := range fields {
		if value := f.get(other); value != "" && f.get(*s) == "" {
			if err := f.set(s, value); err != nil {
				panic(err) // other has the value, so it was accepted before
			}
		}
	}
}

// missing returns the names of the fields that s lacks. Major and minor follow from the version.
func (s Stamp) missing() []string {
	var keys []string
	for _, f := range fields {
		if f.key != "KUBE_GIT_MAJOR" && f.key != "KUBE_GIT_MINOR" && f.get(s) == "" {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// derive sets major and minor from the version unless they are set.
func (s *Stamp) derive() {
	major, minor := majorMinor(s.Version)
	s.Major, s.Minor = cmp.Or(s.Major, major), cmp.Or(s.Minor, minor)
}
