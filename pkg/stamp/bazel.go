package stamp

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// XDefs are the variables of LDFlags as rules_go's x_defs, with the names that WorkspaceStatus has for their values.
func XDefs() map[string]string {
	defs := map[string]string{}
	for name := range (Stamp{}).values() {
		for _, pkg := range stamped {
			defs[pkg+"."+name] = "{" + statusKey(name) + "}"
		}
	}
	return defs
}

// WorkspaceStatus is a stamp as the output of a workspace status command of Bazel. All its keys are stable ones: binaries
// that have it in them are made again if it changes.
func (s Stamp) WorkspaceStatus() []byte {
	var b strings.Builder
	values := s.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		b.WriteString(statusKey(name) + " " + values[name] + "\n")
	}
	return []byte(b.String())
}

// statusKey is STABLE_GIT_VERSION for gitVersion.
func statusKey(name string) string {
	var b strings.Builder
	b.WriteString("STABLE_")
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
