package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/github/go-spdx/v2/spdxexp"
	gomodule "golang.org/x/mod/module"
)

// Licenses are what a tree says about licenses. In release.yaml, deny and allow stand beside what is declared: neither is the path of a
// module that another one can require.
type Licenses struct {
	// Deny and Allow are the policy: licenses by their SPDX identifiers, or with an exception as in GPL-2.0-only WITH
	// Classpath-exception-2.0. Without both, every license may be in a release.
	Deny  []string `json:"deny,omitempty" file:"optional" each:"a license"`
	Allow []string `json:"allow,omitempty" file:"optional" each:"a license"` // empty: all that are not denied

	// Declared says under which license code is whose texts nothing recognizes, as an SPDX expression: by the path of a module, or by the
	// package URL of a Debian package, pkg:deb/debian/NAME.
	Declared map[string]string `json:"declared,omitempty" file:"rest" each:"the license of %s"`
}

// HasPolicy reports whether there are licenses that a release must not have.
func (l Licenses) HasPolicy() bool { return len(l.Deny)+len(l.Allow) > 0 }

// debianKeys begins the keys of Debian packages among the declared licenses.
const debianKeys = "pkg:deb/debian/"

// DeclaredModules returns what is declared of modules, by their paths, and DeclaredPackages what is declared of Debian packages, by their
// names. They are nil if nothing is.
func (l Licenses) DeclaredModules() map[string]string {
	return l.declared(func(key string) (string, bool) { return key, !strings.HasPrefix(key, debianKeys) })
}

// DeclaredPackages is documented at DeclaredModules.
func (l Licenses) DeclaredPackages() map[string]string {
	return l.declared(func(key string) (string, bool) { return strings.CutPrefix(key, debianKeys) })
}

func (l Licenses) declared(of func(key string) (name string, ok bool)) map[string]string {
	var found map[string]string
	for key, license := range l.Declared {
		if name, ok := of(key); ok {
			if found == nil {
				found = map[string]string{}
			}
			found[name] = license
		}
	}
	return found
}

// Refused returns the licenses that keep code under an SPDX expression out of a release, or nothing if it may be in one: of alternatives
// (OR), one that is allowed is enough, and of what counts together (AND), all must be. To deny a license is to deny it with every
// exception, too, but those that are allowed with it by name. A license that is not on SPDX' list, NOASSERTION and "" are refused if there
// is a list of allowed ones, unless that names it. What is no expression is refused.
//
// This walks the expression itself. [spdxexp.Satisfies] only knows allowed licenses, does not say which one it misses, and multiplies
// expressions out: one of a Debian package, dozens of alternatives joined by AND, has more combinations than there is memory.
// The library judges single licenses: spellings (GPL-2.0+, GPL-2.0-or-later), exceptions and later versions.
func (l Licenses) Refused(expression string) []string {
	if expression == "" {
		expression = "NOASSERTION"
	}
	w := &licenseWalk{words: strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(expression)), of: l}
	refused := w.either()
	if len(w.words) > 0 || w.broken {
		return []string{expression}
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// A licenseWalk goes over an expression from its left to its right.
type licenseWalk struct {
	words  []string // that are left
	of     Licenses
	broken bool // it is no expression
}

// next takes a word if it is next, in upper case or in lower.
func (w *licenseWalk) next(word string) bool {
	if len(w.words) == 0 || w.words[0] != word && w.words[0] != strings.ToLower(word) {
		return false
	}
	w.words = w.words[1:]
	return true
}

// either returns what is refused of alternatives: nothing if one of them may be taken.
func (w *licenseWalk) either() []string {
	refused := w.all()
	for w.next("OR") {
		if other := w.all(); len(other) == 0 || len(refused) == 0 {
			refused = nil
		} else {
			refused = append(refused, other...)
		}
	}
	return refused
}

// all returns what is refused of licenses that count together.
func (w *licenseWalk) all() []string {
	refused := w.one()
	for w.next("AND") {
		refused = append(refused, w.one()...)
	}
	return refused
}

// one returns what is refused of a license, or of an expression in parentheses.
func (w *licenseWalk) one() []string {
	if w.next("(") {
		refused := w.either()
		w.broken = w.broken || !w.next(")")
		return refused
	}
	if len(w.words) == 0 || slices.Contains([]string{")", "AND", "OR", "WITH"}, w.words[0]) {
		w.broken = true
		return nil
	}
	license := w.words[0]
	w.words = w.words[1:]
	name := license
	if w.next("WITH") {
		if len(w.words) == 0 {
			w.broken = true
			return nil
		}
		name += " WITH " + w.words[0]
		w.words = w.words[1:]
	}
	if w.of.allows(license, name) {
		return nil
	}
	return []string{name}
}

// allows reports whether a release may have a license. Its name is the license, or has an exception, too.
func (l Licenses) allows(license, name string) bool {
	in := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(other string) bool { return sameLicense(name, other) })
	}
	switch {
	case in(l.Deny, name), in(l.Deny, license) && !(name != license && in(l.Allow, name)):
		return false
	case len(l.Allow) == 0:
		return true
	}
	known, _ := spdxexp.Satisfies(name, l.Allow) // the error is that of a name that is none of SPDX'
	return known || in(l.Allow, name)
}

// sameLicense reports whether two names of licenses, with or without exceptions, mean the same.
func sameLicense(a, b string) bool {
	return normalLicense(a) == normalLicense(b)
}

// normalLicense returns the usual spelling of a license's name: older ones, such as GPL-2.0+, become newer ones.
func normalLicense(name string) string {
	license, exception, with := strings.Cut(name, " WITH ")
	if later, ok := strings.CutSuffix(license, "+"); ok && isGNU(license) {
		license = later + "-or-later"
	} else if isGNU(license) && !strings.HasSuffix(license, "-only") && !strings.HasSuffix(license, "-or-later") {
		license += "-only"
	}
	if with {
		license += " WITH " + exception
	}
	return strings.ToLower(license)
}

// isGNU reports whether a license is one of those whose identifiers say whether later versions are meant.
func isGNU(license string) bool {
	upper := strings.ToUpper(license)
	return slices.ContainsFunc([]string{"GPL-", "LGPL-", "AGPL-", "GFDL-"}, func(p string) bool { return strings.HasPrefix(upper, p) })
}

// checkLicenses reports licenses that SPDX does not know. Which modules are linked is not known here.
func (c *checker) checkLicenses() {
	for _, list := range []*[]string{&c.Licenses.Deny, &c.Licenses.Allow} {
		once(c, "license", *list)
		for i, license := range *list {
			single := spdxexp.ValidateLicensesOptions{FailComplexExpressions: true}
			if valid, _ := spdxexp.ValidateLicensesWithOptions([]string{license}, single); !valid {
				c.add(c.line(&(*list)[i]), "%q is not the SPDX identifier of a license, like MIT or GPL-2.0-only", license)
			}
		}
	}
	for _, license := range c.Licenses.Deny {
		if i := slices.IndexFunc(c.Licenses.Allow, func(other string) bool { return sameLicense(license, other) }); i >= 0 {
			c.add(c.line(&c.Licenses.Allow[i]), "%s is denied, too", license)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(c.Licenses.Declared)) {
		line := c.line(entry{&c.Licenses.Declared, of})
		if err := gomodule.CheckPath(of); err != nil && !strings.HasPrefix(of, debianKeys) {
			c.add(line, "licenses: %v", err)
		}
		license := c.Licenses.Declared[of]
		if valid, _ := spdxexp.ValidateLicenses([]string{license}); license != "" && !valid {
			c.add(line, "%q is not an SPDX license expression like MIT or (Apache-2.0 AND BSD-3-Clause)", license)
		}
	}
}
