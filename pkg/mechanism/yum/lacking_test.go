package yum

import (
	"slices"
	"testing"
)

// What is for other machines is of no use. Files count, too.
func TestLacking(t *testing.T) {
	t.Parallel()
	entry := func(name, arch, more string) Entry {
		return Entry{Primary: `<package type="rpm"><name>` + name + `</name><arch>` + arch + `</arch><version epoch="0" ver="1" rel="1"/>` +
			`<format><rpm:provides><rpm:entry name="` + name + `" flags="EQ" epoch="0" ver="1" rel="1"/></rpm:provides>` + more +
			`</format></package>`}
	}
	a := entry("a", "aarch64", `<rpm:requires><rpm:entry name="b" flags="GE" epoch="0" ver="1"/><rpm:entry name="c"/>`+
		`<rpm:entry name="/usr/bin/c"/><rpm:entry name="/bin/sh"/><rpm:entry name="tar"/></rpm:requires>`)
	all := []Entry{a, entry("b", "x86_64", ""), entry("c", "noarch", `<file>/usr/bin/c</file>`)}
	got, err := Lacking([]Entry{a}, all, []string{"/bin/sh"})
	want := []string{"rpm a 1-1 (aarch64) needs b >= 1", "rpm a 1-1 (aarch64) needs tar"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
