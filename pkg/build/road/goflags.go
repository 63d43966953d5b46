package road

import (
	"fmt"
	"slices"
	"strings"
)

// A FlagError tells a user why a GOFLAGS cannot be used.
type FlagError struct {
	Flag string // as it was given
	Why  string
}

func (e *FlagError) Error() string { return fmt.Sprintf("GOFLAGS: %s: %s", e.Flag, e.Why) }

// BadRequest marks the error as the request's fault: see package badrequest.
func (*FlagError) BadRequest() {}

// reading are flags that name files or programs. What is in those decides bytes and is in no key: a change would go
// unnoticed, and a release could not be repeated from its sources.
var reading = []string{"overlay", "modfile", "toolexec", "exec", "pkgdir", "compiler", "C"}

// Validate reports, as a *FlagError, what a compile cannot honor.
func (o Options) Validate() error {
	for _, flag := range strings.Fields(o.GoFlags) {
		// The Go command lets quotes hold blanks. A flag that needs some is a rare thing, and reading it otherwise than
		// the Go command does would be a silent loss.
		if strings.ContainsAny(flag, `'"`) {
			return &FlagError{flag, "quotes are not supported, and no blanks within a flag (build tags are separated by commas, " +
				"flags for the linker go into GOLDFLAGS)"}
		}
		name, value, ok := cutFlag(flag)
		if !ok {
			return &FlagError{flag, "not a flag like -tags=a,b"}
		}
		if name == "n" && value != "false" {
			return &FlagError{flag, "nothing would be compiled"}
		}
		if slices.Contains(reading, name) || name == "pgo" && value != "off" && value != "auto" {
			return &FlagError{flag, "it names a file or program, and a change there would not be noticed"}
		}
	}
	return nil
}

// userTags finds the build tags in GOFLAGS: -tags on the command line would hide them.
func userTags(goflags string) []string {
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
