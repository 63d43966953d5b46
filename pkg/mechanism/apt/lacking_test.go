package apt

import (
	"slices"
	"testing"
)

// What is for other machines is of no use, and alternatives are not understood: both are missing.
func TestLacking(t *testing.T) {
	t.Parallel()
	entry := func(name, arch, depends string) Entry {
		return Entry("Package: " + name + "\nVersion: 1-1\nArchitecture: " + arch + "\nDepends: " + depends + "\n")
	}
	a := entry("a", "arm64", "b (>= 1), c, b | c, mount")
	got, err := Lacking([]Entry{a}, []Entry{a, entry("b", "amd64", "z"), entry("c", "all", "z")}, []string{"mount"})
	want := []string{"deb a 1-1 (arm64) needs b (>= 1)", "deb a 1-1 (arm64) needs b | c"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
