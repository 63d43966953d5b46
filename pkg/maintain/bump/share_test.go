package bump

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

func TestProjectsShareTheModulesOfTheComponents(t *testing.T) {
	t.Parallel()
	const before = `module example.com/project
go 1.25.0
require (
	example.com/tool v1.0.0
	k8s.io/older v0.36.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	example.com/own v1.0.0 // indirect
)
`
	const after = `module example.com/project

go 1.26.0

require example.com/tool v1.0.0

require (
	example.com/own v1.0.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	k8s.io/older v0.37.0 // indirect
)

godebug default=go1.25
`
	w := wanted{Go: "1.25.0", Own: []string{"example.com/tool"}, Replace: []requirement{}, Versions: map[string]string{
		"example.com/tool": "v1.0.0", "k8s.io/older": "v0.36.0", "k8s.io/newer": "v0.39.0",
		"example.com/own": "v1.0.0",
	}}
	w.Indirect = slices.Collect(maps.Keys(w.Versions))
	w.share(&wanted{Go: "1.26.0", Versions: map[string]string{
		"example.com/tool": "v9.0.0", "k8s.io/older": "v0.37.0", "k8s.io/newer": "v0.37.0", "k8s.io/unused": "v0.37.0",
	}})
	f, err := modfile.Parse("go.mod", []byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.rewrite(f); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Format(); err != nil || string(got) != after {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.TrimSpace(after))
	}
}
