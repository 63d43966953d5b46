package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/catalog"
)

const list = `
{"ImportPath": "acme.test/cmd/one", "Imports": ["fmt", "acme.test/lib"], "Module": {"Path": "acme.test/cmd"}}
{"ImportPath": "acme.test/lib", "Imports": ["far.test/x/deep", "mid.test/m"], "Module": {"Path": "acme.test/lib", "Version": "v1.0.0"}}
{"ImportPath": "mid.test/m", "Imports": ["far.test/x/deep"], "Module": {"Path": "mid.test/m", "Version": "v1.0.0"}}
{"ImportPath": "far.test/x/deep", "Module": {"Path": "far.test/x", "Version": "v2.0.0"}}
{"ImportPath": "acme.test/cmd/two", "Imports": ["mid.test/m"], "Module": {"Path": "acme.test/cmd"}}
{"ImportPath": "fmt", "Standard": true}
`

// subject writes what is judged: two programs of one group, and an image with two packages.
func subject(t *testing.T) (s Subject, abs func(string) string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"list.json": list,
		"names.json": `{"own": ["LicenseRef-repository"], "go": ["BSD-3-Clause"], "modules": {
			"acme.test/lib": {"revision": "v1.0.0", "licenses": ["MIT"]},
			"mid.test/m": {"revision": "v1.0.0", "licenses": ["MIT OR GPL-2.0-only"]},
			"far.test/x": {"revision": "v2.0.0", "licenses": ["AGPL-3.0-only", "ISC"]}}}`,
		"debian.json": `{"libc6": "LGPL-2.1-or-later AND GPL-2.0-only", "libgcc-s1": "NOASSERTION"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Subject{
		Groups: []Group{{ID: "spdx one", Names: "names.json", Packages: "list.json", Programs: []Program{
			{"linux/amd64/one", "acme.test/cmd/one"}, {"linux/amd64/two", "acme.test/cmd/two"}}}},
		Images: []Image{{ID: "spdx debian", Names: "debian.json", Name: "linux/amd64/proxy.tar"}},
	}, func(name string) string { return filepath.Join(dir, name) }
}

func TestAPolicyNamesWhatBringsALicense(t *testing.T) {
	t.Parallel()
	const module = "far.test/x@v2.0.0 (AGPL-3.0-only, of AGPL-3.0-only AND ISC) is linked into linux/amd64/one: " +
		"acme.test/cmd/one → acme.test/lib → far.test/x/deep (and one more)"
	const image = " is in the image linux/amd64/proxy.tar"
	for name, tt := range map[string]struct {
		policy catalog.Licenses
		want   []string
	}{
		"no policy": {catalog.Licenses{}, nil},
		"denied":    {catalog.Licenses{Deny: []string{"AGPL-3.0-only"}}, []string{module}},
		"a choice": {catalog.Licenses{Deny: []string{"MIT"}},
			[]string{"acme.test/lib@v1.0.0 (MIT) is linked into linux/amd64/one: acme.test/cmd/one → acme.test/lib"}},
		"a package": {catalog.Licenses{Deny: []string{"LGPL-2.1-or-later"}},
			[]string{"Debian package libc6 (LGPL-2.1-or-later, of LGPL-2.1-or-later AND GPL-2.0-only)" + image}},
		"allowed": {catalog.Licenses{Allow: []string{"MIT", "ISC", "BSD-3-Clause", "GPL-2.0-only", "LGPL-2.1-or-later"}},
			[]string{"Debian package libgcc-s1 (NOASSERTION)" + image, module}},
		"declared": {catalog.Licenses{Allow: []string{"MIT", "ISC", "BSD-3-Clause", "GPL-2.0-only", "LGPL-2.1-or-later", "AGPL-3.0-only"},
			Declared: map[string]string{"pkg:deb/debian/libgcc-s1": "ISC"}}, nil},
		"Go": {catalog.Licenses{Deny: []string{"BSD-3-Clause"}},
			[]string{"Go's standard library (BSD-3-Clause) is in linux/amd64/one (and one more)"}},
	} {
		s, abs := subject(t)
		s.Policy = tt.policy
		err := Check(s, abs)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%s: %v", name, err)
		}
		if e == nil {
			e = &Error{}
		}
		if diff := cmp.Diff(tt.want, e.Refused); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if err != nil && !strings.Contains(err.Error(), tt.want[0]) {
			t.Errorf("%s: the error does not say what is refused: %v", name, err)
		}
	}
}

func TestModulesWithoutALicenseAreNamedWithoutAPolicy(t *testing.T) {
	t.Parallel()
	s, abs := subject(t)
	names := `{"go": ["BSD-3-Clause"], "modules": {"mid.test/m": {"revision": "local", "licenses": ["LicenseRef-mid.test-m"]}}}`
	if err := os.WriteFile(abs("names.json"), []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []catalog.Licenses{{}, {Allow: []string{"LicenseRef-mid.test-m", "BSD-3-Clause"}}} {
		s.Images, s.Policy = nil, policy
		err := Check(s, abs)
		want := "mid.test/m@local is linked into linux/amd64/one: acme.test/cmd/one → acme.test/lib → mid.test/m"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", policy, err)
		}
	}
}

func TestWithoutAListProgramsAreNamed(t *testing.T) {
	t.Parallel()
	s, abs := subject(t)
	if err := os.Remove(abs("list.json")); err != nil {
		t.Fatal(err)
	}
	s.Policy.Deny = []string{"AGPL-3.0-only"}
	err := Check(s, abs)
	want := "far.test/x@v2.0.0 (AGPL-3.0-only, of AGPL-3.0-only AND ISC) is linked into linux/amd64/one, or"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if err := os.Remove(abs("names.json")); err != nil {
		t.Fatal(err)
	}
	if err := Check(s, abs); err == nil {
		t.Error("licenses that are not there pass")
	}
}
