package debian

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/github/go-spdx/v2/spdxexp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
)

// NoAssertion is the license of a package whose copyright file no program can read.
const NoAssertion = "NOASSERTION"

// A LicenseSpec describes the file that names the licenses of the packages in a base, for ReadLicenses.
type LicenseSpec struct {
	Base   Spec // its output is made
	Output string
}

// LicenseAction returns the action that makes the file.
func LicenseAction(root string, s LicenseSpec) *action.Action {
	return &action.Action{
		ID:      fmt.Sprintf("spdx %s/%s debian %s", s.Base.OS, s.Base.Arch, s.Base.Name),
		Phase:   "licenses",
		Recipe:  code.Recipe(s),
		Inputs:  []string{s.Base.Output, s.Base.Dir + "/" + LockFile},
		Outputs: []string{s.Output},
		Run: func(_ context.Context, t *action.Task) error {
			lock, err := s.Base.lock(root)
			if err != nil {
				return err
			}
			entries, err := archive.ReadTar(filepath.Join(root, filepath.FromSlash(s.Base.Output)))
			if err != nil {
				return err
			}
			owed, err := Copyrights(entries, lock.Packages)
			if err != nil {
				return err
			}
			licenses := map[string]string{}
			for i, p := range lock.Packages { // Copyrights begins with their files, in this order
				licenses[p.Name] = License(string(owed[i].Data), p.Source())
			}
			text, err := json.MarshalIndent(licenses, "", "\t")
			if err != nil {
				return err
			}
			return os.WriteFile(t.Path(s.Output), append(text, '\n'), 0o644)
		},
	}
}

// ReadLicenses returns the SPDX expressions of packages by their names, from a file that LicenseAction makes.
func ReadLicenses(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	licenses := map[string]string{}
	if err := json.Unmarshal(data, &licenses); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return licenses, nil
}

// License returns the SPDX expression for a copyright file of packages of a source, or [NoAssertion] if the file is not of the
// machine-readable form, https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/.
//
// The file names the license of each file of the source, so the expression joins all of them by AND: what is installed is under some of
// them. A license without an SPDX identifier, such as public-domain, is LicenseRef-Debian-SOURCE-NAME, since only within its source does
// a name mean one text.
//
// The form is read by what reads apt's sources, which has the same syntax. Parsers of it in Go, such as that of pault.ag/go/debian, read
// fields alone, too, and know nothing of the licenses' names.
func License(copyright, source string) string {
	stanzas := parseSources(strings.TrimPrefix(copyright, "\ufeff"))
	if len(stanzas) == 0 || !strings.Contains(stanzas[0].get("Format"), "copyright-format/1.0") {
		return NoAssertion
	}
	var all []string
	for i, s := range stanzas {
		if i > 0 && s.get("Files") == "" { // the text of a license that others name
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSpace(s.get("License")), "\n")
		if name = strings.TrimSpace(name); name == "" && i == 0 {
			continue
		}
		expression := choices(name, source)
		if expression == "" {
			return NoAssertion
		}
		if strings.Contains(expression, " OR ") {
			all = append(all, expression)
		} else {
			all = append(all, strings.Split(strings.NewReplacer("(", "", ")", "").Replace(expression), " AND ")...)
		}
	}
	if len(all) == 0 {
		return NoAssertion
	}
	slices.Sort(all)
	return join(slices.Compact(all), " AND ")
}

// join joins expressions, and puts those into parentheses that need them.
func join(all []string, operator string) string {
	if len(all) == 1 {
		return all[0]
	}
	var joined []string
	for _, e := range all {
		if strings.Contains(e, " OR ") || strings.Contains(e, " AND ") {
			e = "(" + e + ")"
		}
		joined = append(joined, e)
	}
	return strings.Join(joined, operator)
}

var (
	commas = regexp.MustCompile(`(?i)\s*,\s*(and|or)\s+`)
	ors    = regexp.MustCompile(`(?i)\s+or\s+`)
	ands   = regexp.MustCompile(`(?i)\s+and\s+`)
)

// choices returns the SPDX expression for what a License field names, or "". "And" binds stronger than "or", and a comma before
// either weaker than both.
func choices(names, source string) string {
	parts := commas.Split(names, -1)
	operators := commas.FindAllStringSubmatch(names, -1)
	whole := ""
	for i, part := range parts {
		var alternatives []string
		for _, alternative := range ors.Split(part, -1) {
			var together []string
			for _, name := range ands.Split(alternative, -1) {
				license := identifier(strings.TrimSpace(name), source)
				if license == "" {
					return ""
				}
				together = append(together, license)
			}
			alternatives = append(alternatives, join(together, " AND "))
		}
		next := join(alternatives, " OR ")
		if i == 0 {
			whole = next
		} else {
			whole = join([]string{whole, next}, " "+strings.ToUpper(operators[i-1][1])+" ")
		}
	}
	return whole
}

// shortNames are the SPDX expressions of short names that differ from SPDX' identifiers in more than case and a final .0, in lower case.
// The names are those of section 7.1 of the format, and others that packages use for the same texts.
var shortNames = map[string]string{
	"expat": "MIT", "artistic": "Artistic-1.0-Perl", "perl": "Artistic-1.0-Perl OR GPL-1.0-or-later", "cc0": "CC0-1.0", "ftl": "FTL",
	"freebsd": "BSD-2-Clause-FreeBSD", "qpl": "QPL-1.0", "python": "Python-2.0", "psf-2": "PSF-2.0", "cpl": "CPL-1.0", "bsl": "BSL-1.0",
	"gpl": "GPL-1.0-or-later", "lgpl": "LGPL-2.0-or-later", // their texts: without a version, any
}

// exceptions are the SPDX identifiers of exceptions, by their names in copyright files, in lower case.
var exceptions = map[string]string{
	"autoconf-data": "Autoconf-exception-generic", "bison": "Bison-exception-2.2", "classpath": "Classpath-exception-2.0",
	"font": "Font-exception-2.0", "libtool": "Libtool-exception", "linux-syscall-note": "Linux-syscall-note",
}

var (
	withException = regexp.MustCompile(`(?i)^(\S+)\s+with\s+(.+?)\s+exception$`)
	notInRef      = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
	noInvariants  = regexp.MustCompile(`(?i)^gfdl-niv-`)
)

// identifier returns the SPDX identifier for a short name, with its exception, or "" if there is no name.
func identifier(name, source string) string {
	license := name
	exception := ""
	if m := withException.FindStringSubmatch(name); m != nil {
		license, exception = m[1], exceptions[strings.ToLower(m[2])]
	}
	if id := listed(license); id != "" && (exception != "" || license == name) {
		if exception != "" {
			id += " WITH " + exception
		}
		return id
	}
	ref := strings.Trim(notInRef.ReplaceAllString(name, "-"), "-.")
	if ref == "" {
		return ""
	}
	return "LicenseRef-Debian-" + notInRef.ReplaceAllString(source, "-") + "-" + ref
}

// listed returns the identifier of a license on SPDX' list, or the expression that a short name means; "" if there is none.
func listed(name string) string {
	if short := shortNames[strings.ToLower(name)]; short != "" {
		return short
	}
	version, later := strings.CutSuffix(name, "+")
	suffix := ""
	if noInvariants.MatchString(version) {
		version, suffix = "GFDL-"+version[len("gfdl-niv-"):], "-no-invariants"
	}
	for _, candidate := range []string{version + suffix, version + ".0" + suffix} {
		for _, family := range []string{"-only", "-or-later"} { // GNU's licenses say by their identifiers which versions are meant
			if found, id := spdxexp.ActiveLicense(candidate + family); found && later == (family == "-or-later") {
				return id
			}
		}
		if found, id := spdxexp.ActiveLicense(candidate); found {
			if later {
				id += "+"
			}
			return id
		}
	}
	return ""
}
