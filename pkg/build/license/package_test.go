package license

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/module"
)

func TestPackages(t *testing.T) {
	t.Parallel()
	a := dependency("example.com/a", "v1.0.0")
	const moduleA = `"Module": {"Path": "example.com/a", "Version": "v1.0.0"}`
	for name, tc := range map[string]struct {
		list string
		want []Package
	}{
		"the standard library is left out": {
			list: `{"ImportPath": "fmt", "Standard": true}{"ImportPath": "example.com/a", ` + moduleA + `}`,
			want: []Package{{"example.com/a", a}},
		},
		"joined lists are sorted and repeat nothing": {
			list: `{"ImportPath": "example.com/a/z", ` + moduleA + `}
				{"ImportPath": "example.com/a/b", ` + moduleA + `}
				{"ImportPath": "example.com/a/z", ` + moduleA + `}`,
			want: []Package{{"example.com/a/b", a}, {"example.com/a/z", a}},
		},
		"variants for tests are their folder's package": {
			list: `{"ImportPath": "example.com/a/b [example.com/a/b.test]", ` + moduleA + `}
				{"ImportPath": "example.com/a/b_test [example.com/a/b.test]", ` + moduleA + `}
				{"ImportPath": "example.com/a/c_test [example.com/a/b.test]", ` + moduleA + `}
				{"ImportPath": "example.com/a/b.test", ` + moduleA + `}
				{"ImportPath": "example.com/a/own.test", ` + moduleA + `}`,
			want: []Package{{"example.com/a/b", a}, {"example.com/a/c_test", a}, {"example.com/a/own.test", a}},
		},
		"a fork": {
			list: `{"ImportPath": "example.com/a", "Module": {"Path": "example.com/a", "Version": "v1.0.0",
				"Replace": {"Path": "example.com/fork", "Version": "v1.1.0"}}}`,
			want: []Package{{"example.com/a", replaced("example.com/a", "v1.0.0", module.Version{Path: "example.com/fork", Version: "v1.1.0"})}},
		},
		"a folder": {
			list: `{"ImportPath": "example.com/a", "Module": {"Path": "example.com/a", "Version": "v1.0.0",
				"Replace": {"Path": "../patched"}}}`,
			want: []Package{{"example.com/a", replaced("example.com/a", "v1.0.0", module.Version{Path: "../patched"})}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Packages(strings.NewReader(tc.list))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackagesRefusesWhatIsNoSuchList(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ list, want string }{
		"cut off":      {`{"ImportPath": "a", "Standard": tr`, "unexpected EOF"},
		"no modules":   {`{"ImportPath": "example.com/a"}`, "example.com/a has no Module"},
		"no packages":  {`{"Dir": "/somewhere"}`, "no ImportPath"},
		"only strings": {`"example.com/a"`, "cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Packages(strings.NewReader(tc.list)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
