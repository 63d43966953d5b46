package transfer

import (
	"fmt"
	"path"
	"strings"
)

// mirrorRules are rsync's filter rules that make the listed files all that it sees here, and the protected paths what it
// does not touch there. A hidden file (H) is deleted at the far end, a protected one (P) is not.
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

// sends says that a path is listed, or one above or below it is.
func (s *surveyed) sends(name string) bool {
	_, listed := s.listed[name]
	for above := path.Dir(name); above != "." && !listed; above = path.Dir(above) {
		listed = s.listed[above]
	}
	return listed
}

// escape makes a pattern that matches one name alone. For rsync a backslash is an escape only in a pattern that has a
// wildcard, and stands for itself in all others.
func escape(name string) string {
	if !strings.ContainsAny(name, "*?[") {
		return name
	}
	return escaper.Replace(name)
}

var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
