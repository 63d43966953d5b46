package bump

import (
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
	k8s.io/pinned v0.39.0 // indirect
	k8s.io/gone v0.39.0 // indirect
	example.com/own v1.0.0 // indirect
)
replace (
	k8s.io/pinned => k8s.io/pinned v0.36.0 // as the components have it
	k8s.io/gone => k8s.io/gone v0.36.0
	example.com/fork => example.com/fork v0.0.1
)
`
	const after = `module example.com/project

go 1.26.0

require example.com/tool v1.0.0

require (
	example.com/own v1.0.0 // indirect
	k8s.io/gone v0.39.0 // indirect
	k8s.io/newer v0.39.0 // indirect
	k8s.io/older v0.37.0 // indirect
	k8s.io/pinned v0.39.0 // indirect
)

replace k8s.io/pinned => k8s.io/pinned v0.37.0
`
	w := wanted{Go: "1.25.0", Own: []string{"example.com/tool"}, Replace: []requirement{}, Versions: map[string]string{
		"example.com/tool": "v1.0.0", "k8s.io/older": "v0.36.0", "k8s.io/newer": "v0.39.0", "k8s.io/pinned": "v0.39.0", "k8s.io/gone": "v0.39.0",
		"example.com/own": "v1.0.0",
	}}
	for path, version := range w.Versions {
		w.Add = append(w.Add, requirement{Path: path, Version: version})
	}
	current, err := modfile.Parse("go.mod", []byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	components := func(line, version string) selection {
		s := selection{Go: line, Versions: map[string]string{"example.com/tool": "v9.0.0", "k8s.io/unused": version}}
		for _, path := range []string{"older", "newer", "pinned", "gone"} {
			s.Versions["k8s.io/"+path] = version
		}
		return s
	}
	was, now := components("1.25.0", "v0.36.0"), components("1.26.0", "v0.37.0")
	delete(now.Versions, "k8s.io/gone")
	w.share(was, now, current)
	got, err := rewrite("go.mod", []byte(before), w)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != after {
		t.Errorf("got:\n%s\nwant:\n%s", got, strings.TrimSpace(after))
	}
}
