package module

import "regexp"

// patched is in the version of a module that patches change: see package patched.
var patched = regexp.MustCompile(`-patched\.p[0-9a-f]{1,12}\.c[0-9a-f]{1,12}`)

// Unpatched returns the version that a patched version stands for, and whether it is one.
func Unpatched(version string) (string, bool) {
	at := patched.FindStringIndex(version)
	if at == nil {
		return version, false
	}
	return version[:at[0]] + version[at[1]:], true
}
