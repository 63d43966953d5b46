package road

import (
	"fmt"
	"slices"
	"strings"
)

// A FlagError reports a flag in GOFLAGS that cannot be honored.
type FlagError struct {
	Flag string // as the user gave it
	Why  string
}

func (e *FlagError) Error() string { return fmt.Sprintf("GOFLAGS: %s: %s", e.Flag, e.Why) }

// BadRequest marks the error as the request's fault: see package badrequest.
func (*FlagError) BadRequest() {}

// fileFlags name files or programs. Their content decides bytes but is part of no key, so a change would go unnoticed, and a
// release could not be repeated from its sources.
var fileFlags = []string{"overlay", "modfile", "toolexec", "exec", "pkgdir", "compiler", "C"}

// validate returns a *FlagError for a flag that no road can honor.
func (o Options) validate() error {
	for _, flag := range strings.Fields(o.GoFlags) {
		// The Go command supports quotes around blanks. Flags that need them are rare, and reading them differently from
		// the Go command would lose some silently.
		if strings.ContainsAny(flag, `'"`) {
			return &FlagError{flag, "quotes and blanks within a flag are not supported (separate build tags by commas; flags for the linker go " +
				"into GOLDFLAGS)"}
		}
		name, value, ok := cutFlag(flag)
		if !ok {
			return &FlagError{flag, "not a flag like -tags=a,b"}
		}
		if name == "n" && value != "false" {
			return &FlagError{flag, "nothing would be compiled"}
		}
		if slices.Contains(fileFlags, name) || name == "pgo" && value != "off" && value != "auto" {
			return &FlagError{flag, "it names a file or program, and a change in that would go unnoticed"}
		}
	}
	return nil
}

// UserTags returns the build tags in GOFLAGS, which -tags on the command line would hide.
func UserTags(goflags string) []string {
	var tags []string
	for _, flag := range strings.Fields(goflags) {
		name, value, ok := cutFlag(flag)
		if !ok || name != "tags" {
			continue
		}
		tags = nil // the last one wins, as in the go command
		if value != "" {
			tags = strings.Split(value, ",")
		}
	}
	return tags
}

// cutFlag splits "-name=value" or "--name".
func cutFlag(flag string) (name, value string, ok bool) {
	rest, ok := strings.CutPrefix(flag, "-")
	rest = strings.TrimPrefix(rest, "-")
	name, value, _ = strings.Cut(rest, "=")
	return name, value, ok && name != "" && !strings.HasPrefix(name, "-")
}
