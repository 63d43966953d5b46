package patch

import (
	"slices"
	"strings"
	"testing"
)

func TestMessagesNameWhatAPatchFixes(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"A title\n\nWords.\n\nFixes: CVE-2026-12345\n":                    "CVE-2026-12345",
		"A title\n\nFixes: GO-2026-1234, CVE-2026-12345\r\n":              "CVE-2026-12345 GO-2026-1234",
		"Fixes: CVE-2026-12345\nFixes: CVE-2026-12345 CVE-2026-1111\n":    "CVE-2026-1111 CVE-2026-12345",
		"Fixes: GHSA-abcd-1234-wxyz":                                      "GHSA-abcd-1234-wxyz",
		"A title\n\nFixes: 123456789abc (\"net: a title\")\n":             "",
		"A title that says Fixes: CVE-2026-12345\nFixes #12\nFixes: #7\n": "",
		"Fixes: CVE-26-12345\n":                                           "error",
		"Fixes: cve-2026-12345\n":                                         "error",
		"Fixes: CVE-2026-12345 and more\n":                                "error",
	} {
		got, err := (&Patch{Name: "patches/1.patch", Commits: []Commit{{Message: message}}}).Fixes()
		if (err != nil) != (want == "error") || err == nil && !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, %v, want %s", message, got, err, want)
		}
	}
}
