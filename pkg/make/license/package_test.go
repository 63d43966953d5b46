package license

import (
	"bytes"
	"io"
	"slices"
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

// A list of packages is an input and an output of actions: it must not differ between machines.
func TestListsNameNoFolders(t *testing.T) {
	const printed = `{"ImportPath":"a/b","Imports":["c"],"Module":{"Path":"a","Version":"v1","Dir":"/home/me/a","GoMod":"/home/me/a.mod","Replace":{"Path":"../a","Dir":"/home/me/a"}}}
{"ImportPath":"c","Standard":true,"Dir":"/usr/lib/go/c"}`
	var list bytes.Buffer
	if err := condense(&list, strings.NewReader(printed)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(list.String(), "/home") || strings.Contains(list.String(), "/usr") {
		t.Errorf("the list is %s", &list)
	}
	want, err := Packages(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Packages(&list)
	if err != nil || len(got) != 1 || !slices.Equal(got, want) {
		t.Errorf("it is read as %v, %v, want %v", got, err, want)
	}
	if err := condense(io.Discard, strings.NewReader(`{"ImportPath":`)); err == nil {
		t.Error("half a list is taken")
	}
}
