package apt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// form is that of a dependency, as package deb writes it. One with alternatives has another, and nothing satisfies it.
var form = regexp.MustCompile(`^(\S+)(?: \((<<|<=|=|>=|>>) (\S+)\))?$`)

// Lacking returns what some packages depend on that is neither in all packages nor, in any version, in base: "deb kubelet 1.37.0-1
// (amd64) needs mount" for each. A package recommends others as well, and works without them. The error is of a version that is none.
func Lacking(some, all []Entry, base []string) (lacks []string, err error) {
	byName := map[string][]Entry{}
	for _, e := range all {
		byName[e.Field("Package")] = append(byName[e.Field("Package")], e)
	}
	for _, e := range some {
		depends := e.Field("Depends")
		if depends == "" {
			continue
		}
		for _, wanted := range strings.Split(depends, ", ") {
			m := form.FindStringSubmatch(wanted)
			if m != nil && slices.Contains(base, m[1]) {
				continue
			}
			there := false
			for i := 0; m != nil && i < len(byName[m[1]]) && !there; i++ {
				if there, err = e.accepts(byName[m[1]][i], m[2], m[3]); err != nil {
					return nil, fmt.Errorf("%s: %s: %w", e.id(), wanted, err)
				}
			}
			if !there {
				lacks = append(lacks, fmt.Sprintf("%s needs %s", e.id(), wanted))
			}
		}
	}
	return lacks, nil
}

// id returns a package's name, version and architecture, for messages.
func (e Entry) id() string {
	return fmt.Sprintf("deb %s %s (%s)", e.Field("Package"), e.Field("Version"), e.Field("Architecture"))
}

// accepts reports whether another package is for the same machines, and has a version that stands in a relation to a bound.
func (e Entry) accepts(other Entry, op, bound string) (bool, error) {
	if arch := other.Field("Architecture"); arch != "all" && arch != e.Field("Architecture") {
		return false, nil
	}
	if op == "" {
		return true, nil
	}
	order, err := Compare(other.Field("Version"), bound)
	switch {
	case err != nil:
		return false, err
	case order < 0:
		return strings.HasPrefix(op, "<"), nil
	case order > 0:
		return strings.HasPrefix(op, ">"), nil
	}
	return strings.HasSuffix(op, "="), nil
}
