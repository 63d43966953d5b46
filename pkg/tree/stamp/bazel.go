package stamp

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// XDefs returns the variables of LDFlags as rules_go's x_defs. Their values are keys of WorkspaceStatus.
func XDefs() map[string]string {
	defs := map[string]string{}
	for name := range (Stamp{}).values() {
		for _, pkg := range stamped {
			defs[pkg+"."+name] = "{" + statusKey(name) + "}"
		}
	}
	return defs
}

// WorkspaceStatus returns the stamp as the output of Bazel's workspace status command. All keys are stable ones, so Bazel
// links stamped binaries again if a value changes.
func (s Stamp) WorkspaceStatus() []byte {
	var b strings.Builder
	values := s.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(statusKey(name) + " " + values[name] + "\n")
	}
	return []byte(b.String())
}

// ErrNotRelease says that Bazel ran without the configuration that stamps a release.
var ErrNotRelease = errors.New("not built as a release")

// FromWorkspaceStatus reads a stamp from the file that Bazel makes of such output. The file may have other lines, too.
func FromWorkspaceStatus(status []byte) (Stamp, error) {
	values := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		values[key] = value
	}
	value := func(name string) string { return values[statusKey(name)] }
	s := Stamp{
		Version: value("gitVersion"), Commit: value("gitCommit"), TreeState: value("gitTreeState"),
		Major: value("gitMajor"), Minor: value("gitMinor"),
	}
	if missing := s.missing(); len(missing) > 1 { // the date is parsed below
		return Stamp{}, fmt.Errorf("the workspace status has no %s: %w", statusKey("gitVersion"), ErrNotRelease)
	}
	var err error
	if s.Date, err = time.Parse(time.RFC3339, value("buildDate")); err != nil {
		return Stamp{}, fmt.Errorf("the workspace status: %s: %w", statusKey("buildDate"), err)
	}
	return s, nil
}

// statusKey returns STABLE_GIT_VERSION for gitVersion.
func statusKey(name string) string {
	return "STABLE_" + strings.ToUpper(upper.ReplaceAllString(name, "_$0"))
}

var upper = regexp.MustCompile("[A-Z]")
