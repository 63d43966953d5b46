package checksum

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// SHA256SUMS is the content of a file for sha256sum -c, sorted by name.
func (s Sums) SHA256SUMS() []byte {
	return s.format(func(d Digest) string { return d.SHA256 })
}

// SHA512SUMS is the content of a file for sha512sum -c, sorted by name.
func (s Sums) SHA512SUMS() []byte {
	return s.format(func(d Digest) string { return d.SHA512 })
}

func (s Sums) format(sum func(Digest) string) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		b.WriteString(line(sum(s[name]), name))
	}
	return b.Bytes()
}

// A name that would break its line is escaped, and a backslash before the sum says so.
var (
	escape   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)

func line(sum, name string) string {
	escaped := escape.Replace(name)
	if escaped != name {
		sum = `\` + sum
	}
	return sum + "  " + escaped + "\n"
}
