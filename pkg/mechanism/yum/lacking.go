package yum

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	rpmversion "github.com/knqyf263/go-rpm-version"
)

// A described is what the list primary says of a package and others.
type described struct {
	Name     string       `xml:"name"`
	Arch     string       `xml:"arch"`
	Version  version      `xml:"version"`
	Provides []dependency `xml:"format>provides>entry"`
	Requires []dependency `xml:"format>requires>entry"`
	Files    []string     `xml:"format>file"`
}

// Lacking returns what some packages require that none of all packages provides, and that is not, in any version, in base:
// "rpm kubelet 1.37.0-1 (x86_64) needs util-linux" for each. A package recommends others as well, and works without them.
func Lacking(some, all []Entry, base []string) (lacks []string, err error) {
	wanting, err := describe(some)
	if err != nil {
		return nil, err
	}
	there, err := describe(all)
	if err != nil {
		return nil, err
	}
	for _, p := range wanting {
		for _, wanted := range p.Requires {
			provided := func(other described) bool { return p.accepts(other, wanted) }
			if !slices.Contains(base, wanted.Name) && !slices.ContainsFunc(there, provided) {
				lacks = append(lacks, fmt.Sprintf("rpm %s %s (%s) needs %s", p.Name, p.Version.text(), p.Arch, wanted))
			}
		}
	}
	return lacks, nil
}

func describe(entries []Entry) ([]described, error) {
	all := make([]described, len(entries))
	for i, e := range entries {
		if err := xml.Unmarshal([]byte(e.Primary), &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Location, err)
		}
	}
	return all, nil
}

// accepts reports whether another package is for the same machines, and has a file of a name, or provides that in a version that will do.
func (p described) accepts(other described, wanted dependency) bool {
	if other.Arch != "noarch" && other.Arch != p.Arch {
		return false
	}
	if slices.Contains(other.Files, wanted.Name) {
		return true
	}
	return slices.ContainsFunc(other.Provides, func(has dependency) bool {
		if has.Name != wanted.Name {
			return false
		}
		if wanted.Flags == "" {
			return true
		}
		if wanted.Release == "" {
			has.Release = "" // rpm compares releases if both have one
		}
		order := rpmversion.NewVersion(has.version().text()).Compare(rpmversion.NewVersion(wanted.version().text()))
		allowed := map[int]string{-1: "LT LE", 0: "LE EQ GE", 1: "GE GT"}[order]
		return has.Flags == "EQ" && slices.Contains(strings.Fields(allowed), wanted.Flags)
	})
}

func (d dependency) version() version { return version{d.Epoch, d.Version, d.Release} }

// String returns the dependency as people write it: "kubernetes-cni >= 1.2.0".
func (d dependency) String() string {
	op := map[string]string{"LT": " < ", "LE": " <= ", "EQ": " = ", "GE": " >= ", "GT": " > "}[d.Flags]
	return d.Name + op + d.version().text()
}

// text returns a version as rpm spells it.
func (v version) text() string {
	text := v.Version
	if v.Epoch != "" && v.Epoch != "0" {
		text = v.Epoch + ":" + text
	}
	if v.Release != "" {
		text += "-" + v.Release
	}
	return text
}
