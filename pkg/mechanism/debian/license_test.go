package debian

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
)

const format = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"

func TestMachineReadableCopyrightFilesHaveExpressions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ license, want string }{
		"by SPDX' name":          {"BSD-3-clause", "BSD-3-Clause"},
		"by a short name":        {"Expat", "MIT"},
		"a version":              {"GPL-2", "GPL-2.0-only"},
		"a version with a point": {"LGPL-2.1", "LGPL-2.1-only"},
		"later versions":         {"GPL-2+", "GPL-2.0-or-later"},
		"later, with a point":    {"GPL-2.0+", "GPL-2.0-or-later"},
		"of no family":           {"Apache-2", "Apache-2.0"},
		"no version":             {"LGPL", "LGPL-2.0-or-later"},
		"no invariants":          {"GFDL-NIV-1.3+", "GFDL-1.3-no-invariants-or-later"},
		"two names":              {"Perl", "Artistic-1.0-Perl OR GPL-1.0-or-later"},
		"a choice":               {"GPL-2 or BSD-3-clause", "GPL-2.0-only OR BSD-3-Clause"},
		"together":               {"GPL-2 and BSD-3-clause", "BSD-3-Clause AND GPL-2.0-only"},
		"and before or":          {"GPL-2 or Expat and ISC", "GPL-2.0-only OR (MIT AND ISC)"},
		"a comma after or":       {"GPL-2 or Expat, and ISC", "(GPL-2.0-only OR MIT) AND ISC"},
		"an exception":           {"GPL-3+ with Bison exception", "GPL-3.0-or-later WITH Bison-exception-2.2"},
		"another exception":      {"GPL-2 with Our own exception", "LicenseRef-Debian-src-GPL-2-with-Our-own-exception"},
		"a name of its own":      {"MIT/X11", "LicenseRef-Debian-src-MIT-X11"},
		"no name":                {"/", NoAssertion},
		"nothing between":        {"GPL-2 or  or MIT", "LicenseRef-Debian-src-or-MIT OR GPL-2.0-only"},
		"a text below":           {"ISC\n Permission to use\n .\n is hereby", "ISC"},
		"on the next line":       {"\n GPL-2", "GPL-2.0-only"},
	} {
		got := License(format+"\nFiles: *\nCopyright: somebody\nLicense: "+tt.license+"\n", "src")
		if name == "nothing between" {
			if got == NoAssertion || got == "" {
				t.Errorf("%s: %q", name, got)
			}
		} else if got != tt.want {
			t.Errorf("%s: %q is %q, want %q", name, tt.license, got, tt.want)
		}
	}
}

func TestTheLicensesOfAllFilesAreJoined(t *testing.T) {
	t.Parallel()
	text := format + `Upstream-Name: a

Files: *
Copyright: A
License: GPL-2+ and Expat

Files: b c
 d
License: Expat

# a comment
Files: lib
License: LGPL-2.1+ or BSD-2-clause

License: Beerware
 Buy the author a beer.
`
	want := "GPL-2.0-or-later AND (LGPL-2.1-or-later OR BSD-2-Clause) AND MIT"
	if got := License(text, "a"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, text := range []string{"", "This package was debianized by A.\n\nLicense: GPL-2\n", format + "\nLicense: MIT\n a text\n",
		format + "\nFiles: *\nCopyright: A\n"} {
		if got := License(text, "a"); got != NoAssertion {
			t.Errorf("%q is %q, want %s", text, got, NoAssertion)
		}
	}
}

func TestLicensesOfABase(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	base := Spec{Name: "b", OS: "linux", Arch: "amd64", Dir: "images/b", Output: "b.tar"}
	none := strings.Repeat("0", 64)
	lock := Lock{Suite: "trixie", Packages: []Package{
		{Arch: "amd64", Name: "liba1", Version: "1", Size: 1, SHA256: none, Archive: Main, Path: "pool/main/a/asrc/liba1_1_amd64.deb"},
		{Arch: "amd64", Name: "old", Version: "1", Size: 1, SHA256: none, Archive: Main, Path: "pool/main/o/old/old_1_amd64.deb"},
		{Arch: "arm64", Name: "not", Version: "1", Size: 1, SHA256: none, Archive: Main, Path: "pool/main/n/not/not_1_arm64.deb"},
	}}
	dir := filepath.Join(root, "images", "b")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, LockFile), lock.Marshal("test"), 0o644)); err != nil {
		t.Fatal(err)
	}
	files := []archive.Entry{
		{Name: "usr/share/doc/liba1/copyright", Mode: 0o644, Data: []byte(format + "\nFiles: *\nLicense: custom\n")},
		{Name: "usr/share/doc/old/copyright", Mode: 0o644, Data: []byte("Do as you please.\n")},
	}
	if err := writeTar(filepath.Join(root, "b.tar"), files); err != nil {
		t.Fatal(err)
	}
	graph := action.Graph{Root: root, State: "state", Actions: []*action.Action{LicenseAction(root, LicenseSpec{base, "out.json"})}}
	if err := graph.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLicenses(filepath.Join(root, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"liba1": "LicenseRef-Debian-asrc-custom", "old": NoAssertion}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
