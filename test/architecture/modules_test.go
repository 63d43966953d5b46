package architecture

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// In a program that another go.mod selects modules for, linked.sum is all that says which modules slipway's own go.mod selects.
func TestLinkedModulesAreThoseOfGoMod(t *testing.T) {
	t.Parallel()
	const name = "../../pkg/tree/self/linked.sum"
	linked := map[string]bool{}
	for _, all := range load(t) {
		packages.Visit([]*packages.Package{all[strings.TrimSuffix(module, "/")]}, nil, func(p *packages.Package) {
			if p.Module != nil && !p.Module.Main {
				linked[p.Module.Path+" "+p.Module.Version+" h1:"] = true
			}
		})
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(string(sums)) {
		if known, _, _ := strings.Cut(line, "h1:"); linked[known+"h1:"] {
			want.WriteString(line)
			delete(linked, known+"h1:")
		}
	}
	if len(linked) > 0 {
		t.Fatalf("go.sum lacks %q", slices.Sorted(maps.Keys(linked)))
	}
	if got, err := os.ReadFile(name); err == nil && string(got) == want.String() {
		return
	}
	if !*update {
		t.Fatalf("%s is not what slipway links: go test ./test/architecture -update", name)
	}
	if err := os.WriteFile(name, []byte(want.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The examples show the Kubernetes that the tree releases, and compile nothing that the components do not.
func TestExamplesRequireTheComponentsVersions(t *testing.T) {
	t.Parallel()
	read := func(name string) *modfile.File {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(name, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	examples, components := read("../../examples/go.mod"), read("../../cmd/go.mod")
	if examples.Go.Version != components.Go.Version {
		t.Errorf("examples/go.mod asks for Go %s, cmd/go.mod for %s", examples.Go.Version, components.Go.Version)
	}
	versions := map[string]string{}
	for _, r := range components.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range components.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	for _, r := range examples.Require {
		if want := versions[r.Mod.Path]; want != r.Mod.Version {
			t.Errorf("examples/go.mod requires %s %s, cmd/go.mod %q", r.Mod.Path, r.Mod.Version, want)
		}
	}
}
