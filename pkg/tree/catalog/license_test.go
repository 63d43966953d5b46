package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPolicyJudgesExpressions(t *testing.T) {
	t.Parallel()
	deny := Licenses{Deny: []string{"GPL-2.0-only", "AGPL-3.0-or-later"}}
	allow := Licenses{Allow: []string{"MIT", "Apache-2.0", "BSD-3-Clause", "GPL-2.0-only WITH Classpath-exception-2.0", "LicenseRef-ours"}}
	both := Licenses{Deny: []string{"GPL-2.0-only"}, Allow: []string{"MIT", "GPL-2.0-only WITH Classpath-exception-2.0"}}
	for _, tt := range []struct {
		policy           Licenses
		expression, want string // what is refused, or ""
	}{
		{Licenses{}, "GPL-2.0-only", ""},
		{Licenses{}, "NOASSERTION", ""},
		{Licenses{}, "", ""},

		{deny, "MIT", ""},
		{deny, "GPL-2.0-only", "GPL-2.0-only"},
		{deny, "GPL-2.0", "GPL-2.0"},
		{deny, "GPL-2.0-or-later", ""},
		{deny, "AGPL-3.0+", "AGPL-3.0+"},
		{deny, "GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"},
		{deny, "MIT OR GPL-2.0-only", ""},
		{deny, "GPL-2.0-only OR AGPL-3.0-or-later", "AGPL-3.0-or-later, GPL-2.0-only"},
		{deny, "MIT AND GPL-2.0-only", "GPL-2.0-only"},
		{deny, "MIT OR ISC AND GPL-2.0-only", ""},
		{deny, "(MIT OR ISC) AND GPL-2.0-only", "GPL-2.0-only"},
		{deny, "MIT AND (GPL-2.0-only or ISC)", ""},
		{deny, "NOASSERTION", ""},
		{deny, "", ""},

		{allow, "MIT", ""},
		{allow, "mit", ""},
		{allow, "MIT AND (Apache-2.0 OR GPL-3.0-only)", ""},
		{allow, "MIT AND ISC AND ISC", "ISC"},
		{allow, "NOASSERTION", "NOASSERTION"},
		{allow, "", "NOASSERTION"},
		{allow, "MIT AND LicenseRef-theirs", "LicenseRef-theirs"},
		{allow, "LicenseRef-ours", ""},
		{allow, "GPL-2.0-only", "GPL-2.0-only"},
		{allow, "GPL-2.0-only WITH Classpath-exception-2.0", ""},
		{allow, "GPL-2.0-only WITH Bison-exception-2.2", "GPL-2.0-only WITH Bison-exception-2.2"},
		{allow, "Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception"},

		{both, "GPL-2.0-only WITH Classpath-exception-2.0", ""},
		{both, "GPL-2.0-only", "GPL-2.0-only"},

		// what is no expression passes nothing
		{deny, "MIT AND", "MIT AND"},
		{deny, "(MIT", "(MIT"},
		{deny, "MIT ISC", "MIT ISC"},
		{deny, "OR MIT", "OR MIT"},
		{deny, "MIT)", "MIT)"},
		{deny, "MIT WITH", "MIT WITH"},

		// multiplied out, this has 2^60 alternatives
		{allow, strings.Repeat("(MIT OR ISC) AND ", 60) + "ISC", "ISC"},
	} {
		if got := strings.Join(tt.policy.Refused(tt.expression), ", "); got != tt.want {
			t.Errorf("deny %q, allow %q: of %q, %q is refused, want %q", tt.policy.Deny, tt.policy.Allow, tt.expression, got, tt.want)
		}
	}
}

func TestAPolicyStandsBesideDeclaredLicenses(t *testing.T) {
	t.Parallel()
	c, err := Load(tree(t, edit{"tags: [", `licenses:
  deny: [AGPL-3.0-only]
  allow: [MIT]
  example.com/a: MIT
  pkg:deb/debian/libgcc-s1: GPL-3.0-or-later WITH GCC-exception-3.1
tags: [`}))
	if err != nil {
		t.Fatal(err)
	}
	want := Licenses{Deny: []string{"AGPL-3.0-only"}, Allow: []string{"MIT"}, Declared: map[string]string{
		"example.com/a": "MIT", "pkg:deb/debian/libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1"}}
	if diff := cmp.Diff(want, c.Licenses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"example.com/a": "MIT"}, c.Licenses.DeclaredModules()); diff != "" {
		t.Errorf("modules: -want +got:\n%s", diff)
	}
	packages := map[string]string{"libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1"}
	if diff := cmp.Diff(packages, c.Licenses.DeclaredPackages()); diff != "" {
		t.Errorf("packages: -want +got:\n%s", diff)
	}
	if c := load(t); c.Licenses.DeclaredModules() != nil || c.Licenses.DeclaredPackages() != nil || c.Licenses.HasPolicy() {
		t.Errorf("without licenses: %+v", c.Licenses)
	}
}
