package stamp

import (
	"slices"
	"strings"
	"time"
)

// stamped are the packages of the components that hold a version.
var stamped = []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"}

// LDFlags are the linker's flags that set the version in a component, as go build -ldflags takes them. They are
// sorted: equal stamps have equal flags.
func (s Stamp) LDFlags() string {
	var flags []string
	for _, pkg := range stamped {
		for name, value := range s.values() {
			flags = append(flags, "-X "+quote(pkg+"."+name+"="+value))
		}
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// values are what the variables are set to, by their names in either package.
func (s Stamp) values() map[string]string {
	return map[string]string{
		"buildDate":    s.Date.UTC().Format(time.RFC3339),
		"gitCommit":    s.Commit,
		"gitMajor":     s.Major,
		"gitMinor":     s.Minor,
		"gitTreeState": s.TreeState,
		"gitVersion":   s.Version,
	}
}

// quote quotes a flag the way the Go tool splits them: the quotes, of either kind, stand around the whole of it,
// and nothing escapes them. A value with both kinds has no form; Read lets none of them pass.
func quote(flag string) string {
	if !strings.ContainsAny(flag, " \t\r\n'\"") {
		return flag
	}
	if strings.Contains(flag, "'") {
		return `"` + flag + `"`
	}
	return "'" + flag + "'"
}
