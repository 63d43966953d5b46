package transfer

import (
	"fmt"
	"path"
	"strings"
)

// mirrorRules returns rsync's filter rules, by which it sees only the listed files here and does not touch the protected paths
// there. It deletes a hidden file (H) at the remote end, but not a protected one (P).
func mirrorRules(s *surveyed, protected []string) (string, error) {
	var b strings.Builder
	for _, name := range protected {
		if err := checkName(name); err != nil || name == "." {
			return "", fmt.Errorf("protected %q: is not a clean path below the folder", name)
		}
		if s.sends(name) {
			return "", fmt.Errorf("protected %q: files that are to be sent are in its place", name)
		}
		b.WriteString("P /" + escape(name) + "\x00")
	}
	for _, name := range s.unlisted {
		b.WriteString("H /" + escape(name) + "\x00")
	}
	return b.String(), nil
}

// sends reports whether a path is listed, or one above or below it is.
func (s *surveyed) sends(name string) bool {
	_, listed := s.listed[name]
	for above := path.Dir(name); above != "." && !listed; above = path.Dir(above) {
		listed = s.listed[above]
	}
	return listed
}

// escape returns a pattern that matches only one name. For rsync a backslash is an escape only in a pattern with a wildcard, and
// an ordinary character elsewhere.
func escape(name string) string {
	if !strings.ContainsAny(name, "*?[") {
		return name
	}
	return escaper.Replace(name)
}

var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
