package patch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// fixes begins a trailer of a message that names vulnerabilities. The kernel's habit, "Fixes: 123456789abc (…)", names a commit and means
// nothing here.
const fixes = "Fixes:"

// vulnerability is the name of one: by CVE, by Go's database or by GitHub's.
var vulnerability = regexp.MustCompile(`^(CVE-\d{4}-\d{4,}|GO-\d{4}-\d{4,}|GHSA(-[0-9a-z]{4}){3})$`)

// IsVulnerability reports whether text is the name of a vulnerability, such as CVE-2026-12345.
func IsVulnerability(text string) bool { return vulnerability.MatchString(text) }

// Fixes returns the vulnerabilities that the patch mends, as its messages say by lines such as "Fixes: CVE-2026-12345, GO-2026-1234". It
// returns an error for a line that is meant so and is not one.
func (p *Patch) Fixes() ([]string, error) {
	var all []string
	for _, c := range p.Commits {
		for line := range strings.Lines(c.Message) {
			text, ok := strings.CutPrefix(strings.TrimSpace(line), fixes)
			if !ok {
				continue
			}
			names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
			if !slices.ContainsFunc(names, looksLikeVulnerability) {
				continue
			}
			for _, name := range names {
				if !IsVulnerability(name) {
					return nil, fmt.Errorf("%s: %q: %q is no vulnerability such as CVE-2026-12345", p.Name, strings.TrimSpace(line), name)
				}
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func looksLikeVulnerability(name string) bool {
	prefix, _, _ := strings.Cut(strings.ToUpper(name), "-")
	return slices.Contains([]string{"CVE", "GO", "GHSA"}, prefix)
}
